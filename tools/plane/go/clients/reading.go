package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// findResources reads the version and the aggregated discovery.
func findResources(p *player) (string, error) {
	version, err := p.discovery.ServerVersion()
	if err != nil {
		return "", err
	}
	_, lists, err := p.discovery.ServerGroupsAndResources()
	if err != nil {
		return "", err
	}
	names := []string{"pods/eviction", "pods/binding", "bindings", "deployments/scale", "leases", "horizontalpodautoscalers"}
	var found []string
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if slices.Contains(names, resource.Name) {
				found = append(found, list.GroupVersion+" "+resource.Name)
			}
		}
	}
	preferred, err := discovery.ServerPreferredNamespacedResources(p.discovery)
	if err != nil {
		return "", err
	}
	for _, list := range preferred {
		for _, resource := range list.APIResources {
			if resource.Name == "horizontalpodautoscalers" {
				found = append(found, "prefers "+list.GroupVersion)
			}
		}
	}
	slices.Sort(found)
	return fmt.Sprintf("v%s.%s, %s", version.Major, version.Minor, strings.Join(found, ", ")), nil
}

// mapNames goes from short names to kinds and back to resources.
func mapNames(p *player) (string, error) {
	short := restmapper.NewShortcutExpander(p.mapper, p.discovery, nil)
	var found []string
	for _, name := range []string{"deploy", "hpa", "pdb", "po", "cm", "ns"} {
		kind, err := short.KindFor(schema.GroupVersionResource{Resource: name})
		if err != nil {
			return "", err
		}
		mapping, err := short.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return "", err
		}
		found = append(found, fmt.Sprintf("%s=%s(%s)", name, mapping.Resource.GroupResource(), mapping.Scope.Name()))
	}
	return strings.Join(found, " "), nil
}

func reviewAccess(p *player) (string, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: p.namespace},
	}}
	answer, err := p.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(p.ctx, review, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("allowed=%t", answer.Status.Allowed), nil
}

// listInParts lists by pages of two, and by selectors.
func listInParts(p *player) (string, error) {
	maps := p.typed.CoreV1().ConfigMaps(p.namespace)
	for number := range 5 {
		parity := []string{"even", "odd"}[number%2]
		made := configMap(fmt.Sprintf("part-%d", number), "k", "v")
		made.Labels = map[string]string{"parity": parity}
		if _, err := maps.Create(p.ctx, made, metav1.CreateOptions{}); err != nil {
			return "", err
		}
	}
	parts := pager.New(pager.SimplePageFunc(func(opts metav1.ListOptions) (runtime.Object, error) {
		return maps.List(p.ctx, opts)
	}))
	parts.PageSize = 2
	var names []string
	err := parts.EachListItem(p.ctx, metav1.ListOptions{LabelSelector: "parity"}, func(item runtime.Object) error {
		names = append(names, item.(*corev1.ConfigMap).Name)
		return nil
	})
	if err != nil {
		return "", err
	}
	odd, err := maps.List(p.ctx, metav1.ListOptions{LabelSelector: "parity in (odd)", FieldSelector: "metadata.name!=part-1"})
	if err != nil {
		return "", err
	}
	err = maps.DeleteCollection(p.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "parity"})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; odd but part-1: %d", strings.Join(names, " "), len(odd.Items)), nil
}

// followChanges runs a shared informer, and waits for each event and for a resync.
func followChanges(p *player) (string, error) {
	maps := p.typed.CoreV1().ConfigMaps(p.namespace)
	if _, err := maps.Create(p.ctx, configMap("old", "k", "1"), metav1.CreateOptions{}); err != nil {
		return "", err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(p.typed, time.Second, informers.WithNamespace(p.namespace))
	informer := factory.Core().V1().ConfigMaps()
	events := make(chan string, 100)
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			events <- fmt.Sprintf("add %s initial=%t", obj.(*corev1.ConfigMap).Name, initial)
		},
		UpdateFunc: func(old, obj any) {
			before, after := old.(*corev1.ConfigMap), obj.(*corev1.ConfigMap)
			if before.ResourceVersion == after.ResourceVersion {
				events <- "resync " + after.Name
			} else {
				events <- fmt.Sprintf("update %s %s to %s", after.Name, before.Data["k"], after.Data["k"])
			}
		},
		DeleteFunc: func(obj any) { events <- "delete " + obj.(*corev1.ConfigMap).Name },
	})
	if err != nil {
		return "", err
	}
	stop := make(chan struct{})
	factory.Start(stop)
	defer func() { close(stop); factory.Shutdown() }()
	factory.WaitForCacheSync(stop)
	seen := []string{}
	expect := func(resync bool) error {
		for {
			select {
			case event := <-events:
				if strings.HasPrefix(event, "resync") && !resync {
					continue
				}
				seen = append(seen, event)
				return nil
			case <-time.After(20 * time.Second):
				return fmt.Errorf("no event after %q", seen)
			}
		}
	}
	if err := expect(false); err != nil {
		return "", err
	}
	for _, change := range []func() error{
		func() error {
			_, err := maps.Create(p.ctx, configMap("new", "k", "1"), metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := maps.Update(p.ctx, configMap("new", "k", "2"), metav1.UpdateOptions{})
			return err
		},
		func() error { return maps.Delete(p.ctx, "new", metav1.DeleteOptions{}) },
	} {
		if err := change(); err != nil {
			return "", err
		}
		if err := expect(false); err != nil {
			return "", err
		}
	}
	if err := expect(true); err != nil {
		return "", err
	}
	cached, err := informer.Lister().ConfigMaps(p.namespace).Get("old")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; cached k=%s", strings.Join(seen, ", "), cached.Data["k"]), nil
}

// listMetadata reads names and labels only.
func listMetadata(p *player) (string, error) {
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	list, err := p.metadata.Resource(resource).Namespace(p.namespace).List(p.ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return strings.Join(names, " "), nil
}

func configMap(name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{key: value}}
}
