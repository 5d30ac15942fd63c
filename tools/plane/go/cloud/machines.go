package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// boot is how long a machine takes to run.
const boot = 100 * time.Millisecond

type said = map[string]any

type node struct {
	ProviderID string `json:"providerID"`
}

// request has the fields of all requests that are read here.
type request struct {
	ID    string `json:"id"`
	Delta int    `json:"delta"`
	Nodes []node `json:"nodes"`
	Node  node   `json:"node"`
}

type machine struct {
	id      string
	ordered time.Time
}

func (m machine) runs() bool { return time.Since(m.ordered) >= boot }

type group struct {
	id             string
	least, most    int
	here           []machine
	unneeded       string
	ordersSoFar    int
	thresholdOfCPU float64
}

type machines struct {
	lock   sync.Mutex
	groups []*group
}

func newMachines() *machines {
	kept := &group{id: "kept", least: 1, most: 2, unneeded: "180s", thresholdOfCPU: 0.25}
	kept.order(1)
	return &machines{groups: []*group{{id: "empty", most: 3}, kept}}
}

func (g *group) order(count int) {
	for range count {
		g.ordersSoFar++
		g.here = append(g.here, machine{fmt.Sprintf("go://%s/%d", g.id, g.ordersSoFar), time.Now()})
	}
}

func (g *group) has(id string) bool {
	return slices.ContainsFunc(g.here, func(m machine) bool { return m.id == id })
}

func (g *group) said() said {
	return said{"id": g.id, "minSize": g.least, "maxSize": g.most, "debug": "made up"}
}

func (m *machines) answer(method string, asked request) (said, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	switch method {
	case "Refresh", "Cleanup":
		return said{}, nil
	case "GPULabel":
		return said{"label": "example.com/gpu"}, nil
	case "GetAvailableGPUTypes":
		kind := said{"@type": "type.googleapis.com/google.protobuf.Duration", "value": "0s"}
		return said{"gpuTypes": said{"small": kind, "large": kind}}, nil
	case "NodeGroups":
		all := []said{}
		for _, one := range m.groups {
			all = append(all, one.said())
		}
		return said{"nodeGroups": all}, nil
	case "NodeGroupForNode":
		for _, one := range m.groups {
			if one.has(asked.Node.ProviderID) {
				return said{"nodeGroup": one.said()}, nil
			}
		}
		return said{"nodeGroup": said{}}, nil
	}
	for _, one := range m.groups {
		if one.id == asked.ID {
			return one.answer(method, asked)
		}
	}
	if asked.ID == "" {
		return nil, missing(method)
	}
	return nil, refused("no node group %s", asked.ID)
}

func (g *group) answer(method string, asked request) (said, error) {
	switch method {
	case "NodeGroupTargetSize":
		return said{"targetSize": len(g.here)}, nil
	case "NodeGroupNodes":
		all := []said{}
		for _, one := range g.here {
			state := "instanceCreating"
			if one.runs() {
				state = "instanceRunning"
			}
			all = append(all, said{"id": one.id, "status": said{"instanceState": state}})
		}
		return said{"instances": all}, nil
	case "NodeGroupIncreaseSize":
		if asked.Delta <= 0 || len(g.here)+asked.Delta > g.most {
			return nil, refused("%s: %d and %d more are above %d", g.id, len(g.here), asked.Delta, g.most)
		}
		g.order(asked.Delta)
		return said{}, nil
	case "NodeGroupDecreaseTargetSize":
		return said{}, g.withdraw(-asked.Delta)
	case "NodeGroupDeleteNodes":
		return said{}, g.end(asked.Nodes)
	case "NodeGroupTemplateNodeInfo":
		bytes, err := template(g.id).Marshal()
		if err != nil {
			return nil, err
		}
		slice, err := devices(g.id).Marshal()
		return said{"nodeBytes": bytes, "resourceSliceBytes": [][]byte{slice}}, err
	case "NodeGroupGetOptions":
		if g.unneeded == "" {
			return said{}, nil
		}
		options := said{
			"scaleDownUnneededDuration":     g.unneeded,
			"maxNodeStartupDuration":        "600s",
			"scaleDownUtilizationThreshold": g.thresholdOfCPU,
			"allowNonAtomicScaleUpToMax":    true,
		}
		return said{"nodeGroupAutoscalingOptions": options}, nil
	}
	return nil, missing(method)
}

func (g *group) withdraw(count int) error {
	waiting := slices.DeleteFunc(slices.Clone(g.here), machine.runs)
	if count <= 0 || count > len(waiting) {
		return refused("%s: %d of %d that do not run yet", g.id, count, len(waiting))
	}
	for _, one := range waiting[len(waiting)-count:] {
		g.here = slices.DeleteFunc(g.here, func(m machine) bool { return m.id == one.id })
	}
	return nil
}

func (g *group) end(nodes []node) error {
	doomed := map[string]bool{}
	for _, one := range nodes {
		if !g.has(one.ProviderID) {
			return refused("%s has no machine %s", g.id, one.ProviderID)
		}
		doomed[one.ProviderID] = true
	}
	if len(g.here)-len(doomed) < g.least {
		return refused("%s: at least %d stay", g.id, g.least)
	}
	g.here = slices.DeleteFunc(g.here, func(m machine) bool { return doomed[m.id] })
	return nil
}

func devices(id string) *resourcev1.ResourceSlice {
	name, memory := "template-"+id, resource.MustParse("16Gi")
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-devices"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver:   "made-up.example.com",
			Pool:     resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1},
			NodeName: &name,
			Devices: []resourcev1.Device{{
				Name:     "device-0",
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: memory}},
			}},
		},
	}
}

func template(id string) *v1.Node {
	size := v1.ResourceList{
		"cpu":    resource.MustParse("1930m"),
		"memory": resource.MustParse("7Gi"),
		"pods":   resource.MustParse("110"),
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "template-" + id, Labels: map[string]string{"group": id}},
		Spec:       v1.NodeSpec{Taints: []v1.Taint{{Key: "made-up", Value: "yes", Effect: v1.TaintEffectNoSchedule}}},
		Status: v1.NodeStatus{
			Capacity:    size,
			Allocatable: size,
			Conditions:  []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		},
	}
}
