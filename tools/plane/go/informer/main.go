// Runs an informer of all pods, as upstream's controllers do, and prints what its first list has cost.
//
//	informer KUBECONFIG CONTENT_TYPE
//
// One line of JSON: the pods, the CPU time of the process for each, and the memory that it has grown by for
// each: as it is once all are there, and when all that the collector can give back was given back.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 5 * time.Minute

type usage struct {
	cpu     time.Duration
	resides int64
}

type found struct {
	Pods      int     `json:"pods"`
	ListUs    float64 `json:"list_us"`
	CachedKiB float64 `json:"cached_pod_kib"`
	LeastKiB  float64 `json:"cached_pod_least_kib"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: informer KUBECONFIG CONTENT_TYPE")
		os.Exit(2)
	}
	said, err := measure(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		os.Exit(1)
	}
}

func measure(kubeconfig, contentType string) (*found, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.ContentType = contentType
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// What a first request costs is not what is measured.
	if _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"}); err != nil {
		return nil, err
	}
	debug.FreeOSMemory()
	before, err := used()
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	factory.Start(ctx.Done())
	for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("the informer has not synced within %s", patience)
		}
	}
	after, err := used()
	if err != nil {
		return nil, err
	}
	debug.FreeOSMemory()
	least, err := used()
	if err != nil {
		return nil, err
	}
	count := len(pods.GetStore().List())
	each := func(bytes int64) float64 { return float64(bytes-before.resides) / 1024 / float64(count) }
	return &found{
		Pods:      count,
		ListUs:    float64((after.cpu - before.cpu).Microseconds()) / float64(count),
		CachedKiB: each(after.resides),
		LeastKiB:  each(least.resides),
	}, nil
}

// used gives what the process has used so far (Linux).
func used() (usage, error) {
	var spent syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &spent); err != nil {
		return usage{}, err
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return usage{}, err
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		return usage{}, err
	}
	cpu := time.Duration(spent.Utime.Nano() + spent.Stime.Nano())
	return usage{cpu: cpu, resides: pages * int64(os.Getpagesize())}, nil
}
