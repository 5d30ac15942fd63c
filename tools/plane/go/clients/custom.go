package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	wheels      = schema.GroupVersionResource{Group: "go.example.com", Version: "v1", Resource: "wheels"}
)

type fields = map[string]any

// defineKind defines a kind and then works with it by the dynamic client, an informer and the scale client.
func defineKind(p *player) (string, error) {
	if err := define(p); err != nil {
		return "", err
	}
	defer func() {
		_ = p.dynamic.Resource(definitions).Delete(context.Background(), "wheels.go.example.com", metav1.DeleteOptions{})
	}()
	own := p.dynamic.Resource(wheels).Namespace(p.namespace)
	events := make(chan string, 10)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(p.dynamic, 0, p.namespace, nil)
	informer := factory.ForResource(wheels).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { events <- "add" },
		UpdateFunc: func(_, obj any) { events <- "update" },
		DeleteFunc: func(any) { events <- "delete" },
	})
	if err != nil {
		return "", err
	}
	stop := make(chan struct{})
	factory.Start(stop)
	defer func() { close(stop); factory.Shutdown() }()
	factory.WaitForCacheSync(stop)

	wheel := &unstructured.Unstructured{Object: fields{
		"apiVersion": "go.example.com/v1", "kind": "Wheel", "metadata": fields{"name": "w"},
		"spec": fields{"count": int64(1), "unknown": "dropped"},
	}}
	made, err := own.Create(p.ctx, wheel, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	_, unknown, _ := unstructured.NestedString(made.Object, "spec", "unknown")
	_ = unstructured.SetNestedField(made.Object, int64(1), "status", "count")
	_ = unstructured.SetNestedField(made.Object, "app=w", "status", "selector")
	if made, err = own.UpdateStatus(p.ctx, made, metav1.UpdateOptions{}); err != nil {
		return "", err
	}
	_ = unstructured.SetNestedField(made.Object, int64(-1), "spec", "count")
	_, invalid := own.Update(p.ctx, made, metav1.UpdateOptions{})
	scales, err := p.scales()
	if err != nil {
		return "", err
	}
	p.mapper.Reset()
	found, err := scales.Scales(p.namespace).Get(p.ctx, wheels.GroupResource(), "w", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	found.Spec.Replicas = 4
	if found, err = scales.Scales(p.namespace).Update(p.ctx, wheels.GroupResource(), found, metav1.UpdateOptions{}); err != nil {
		return "", err
	}
	if err = own.Delete(p.ctx, "w", metav1.DeleteOptions{}); err != nil {
		return "", err
	}
	var seen []string
	for range 4 {
		select {
		case event := <-events:
			seen = append(seen, event)
		case <-time.After(20 * time.Second):
			return "", fmt.Errorf("no event after %q", seen)
		}
	}
	return fmt.Sprintf("unknown field kept=%t; invalid=%t(%s); scale %d of %d (%s); %v", unknown, apierrors.IsInvalid(invalid),
		causes(invalid), found.Status.Replicas, found.Spec.Replicas, found.Status.Selector, seen), nil
}

// define creates the definition and waits until it is established.
func define(p *player) error {
	count := fields{"type": "integer", "format": "int32", "minimum": int64(0)}
	_, err := p.dynamic.Resource(definitions).Create(p.ctx, &unstructured.Unstructured{Object: fields{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": fields{"name": "wheels.go.example.com"},
		"spec": fields{
			"group": "go.example.com", "scope": "Namespaced",
			"names": fields{"plural": "wheels", "singular": "wheel", "kind": "Wheel", "listKind": "WheelList"},
			"versions": []any{fields{
				"name": "v1", "served": true, "storage": true,
				"schema": fields{"openAPIV3Schema": fields{"type": "object", "properties": fields{
					"spec":   fields{"type": "object", "properties": fields{"count": count}},
					"status": fields{"type": "object", "properties": fields{"count": count, "selector": fields{"type": "string"}}},
				}}},
				"subresources": fields{"status": fields{}, "scale": fields{
					"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count", "labelSelectorPath": ".status.selector",
				}},
			}},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(p.ctx, 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		found, err := p.dynamic.Resource(definitions).Get(ctx, "wheels.go.example.com", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
		for _, item := range conditions {
			if condition := item.(fields); condition["type"] == "Established" && condition["status"] == "True" {
				_, err := p.dynamic.Resource(wheels).List(ctx, metav1.ListOptions{})
				return err == nil, nil
			}
		}
		return false, nil
	})
}
