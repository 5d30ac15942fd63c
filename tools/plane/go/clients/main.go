// Command clients plays client-go against an API server and prints a line for each step, the same at every server.
//
//	clients KUBECONFIG
//
// It works in a namespace of its own, needs no controllers, and ends with 1 at the first step that fails.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// player holds the clients of a run and the namespace that it works in.
type player struct {
	ctx       context.Context
	config    *rest.Config
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.CachedDiscoveryInterface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	namespace string
}

type step struct {
	name string
	play func(*player) (string, error)
}

var steps = []step{
	{"discovery", findResources},
	{"mapper", mapNames},
	{"access", reviewAccess},
	{"objects", writeObjects},
	{"list", listInParts},
	{"informer", followChanges},
	{"patches", patchEachWay},
	{"apply", applyByOwners},
	{"scale", scaleDeployment},
	{"evict", evictUnderBudget},
	{"events", recordEvents},
	{"custom", defineKind},
	{"metadata", listMetadata},
	{"leader", electLeader},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: clients KUBECONFIG")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	p, err := newPlayer(ctx, kubeconfig)
	if err != nil {
		return err
	}
	defer func() {
		_ = p.typed.CoreV1().Namespaces().Delete(context.Background(), p.namespace, metav1.DeleteOptions{})
	}()
	for _, one := range steps {
		said, err := one.play(p)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		fmt.Printf("%s: %s\n", one.name, said)
	}
	return nil
}

func newPlayer(ctx context.Context, kubeconfig string) (*player, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 200
	config.WarningHandler = rest.NoWarnings{}
	// Typed clients of controllers talk protobuf; custom kinds have JSON only.
	binary := rest.CopyConfig(config)
	binary.ContentType = "application/vnd.kubernetes.protobuf"
	binary.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	p := &player{ctx: ctx, config: config}
	if p.typed, err = kubernetes.NewForConfig(binary); err != nil {
		return nil, err
	}
	if p.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if p.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	p.discovery = memory.NewMemCacheClient(p.typed.Discovery())
	p.mapper = restmapper.NewDeferredDiscoveryRESTMapper(p.discovery)
	home, err := p.typed.CoreV1().Namespaces().Create(
		ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "go-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	p.namespace = home.Name
	return p, nil
}
