package main

import (
	"context"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

// scales gives the scale client as the HPA controller makes it.
func (p *player) scales() (scale.ScalesGetter, error) {
	return scale.NewForConfig(p.config, p.mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(p.typed.Discovery()))
}

func scaleDeployment(p *player) (string, error) {
	scales, err := p.scales()
	if err != nil {
		return "", err
	}
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	one := scales.Scales(p.namespace)
	found, err := one.Get(p.ctx, deployments, "web", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	before := fmt.Sprintf("%d(%s)", found.Spec.Replicas, found.Status.Selector)
	found.Spec.Replicas = 8
	written, err := one.Update(p.ctx, deployments, found, metav1.UpdateOptions{})
	if err != nil {
		return "", err
	}
	_, stale := one.Update(p.ctx, deployments, found, metav1.UpdateOptions{})
	patched, err := one.Patch(p.ctx, deployments.WithVersion("v1"), "web", types.MergePatchType,
		[]byte(`{"spec":{"replicas":9}}`), metav1.PatchOptions{})
	if err != nil {
		return "", err
	}
	typed, err := p.typed.AppsV1().Deployments(p.namespace).UpdateScale(p.ctx, "web", &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: p.namespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: 10},
	}, metav1.UpdateOptions{})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s to %d, %d, %d; stale conflict=%t", before, written.Spec.Replicas,
		patched.Spec.Replicas, typed.Spec.Replicas, apierrors.IsConflict(stale)), nil
}

// evictUnderBudget is refused by a budget that allows no disruption, and then not.
func evictUnderBudget(p *player) (string, error) {
	pods := p.typed.CoreV1().Pods(p.namespace)
	labels := map[string]string{"app": "web"}
	made, err := pods.Create(p.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: labels},
		Spec: corev1.PodSpec{
			SchedulerName: "nobody",
			Containers:    []corev1.Container{{Name: "main", Image: "nginx:1.27"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: made.Name, UID: made.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "nowhere"},
	}
	if err = pods.Bind(p.ctx, binding, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	bound, err := pods.Get(p.ctx, made.Name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	bound.Status.Phase = corev1.PodRunning
	bound.Status.Conditions = append(bound.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	if _, err = pods.UpdateStatus(p.ctx, bound, metav1.UpdateOptions{}); err != nil {
		return "", err
	}
	budgets := p.typed.PolicyV1().PodDisruptionBudgets(p.namespace)
	budget, err := budgets.Create(p.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)),
			Selector:     &metav1.LabelSelector{MatchLabels: labels},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	evict := func() error {
		return p.typed.PolicyV1().Evictions(p.namespace).Evict(p.ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: made.Name, Namespace: p.namespace},
			DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)},
		})
	}
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, ExpectedPods: 1, CurrentHealthy: 1, DesiredHealthy: 1}
	if budget, err = budgets.UpdateStatus(p.ctx, budget, metav1.UpdateOptions{}); err != nil {
		return "", err
	}
	full := evict()
	budget.Status.DisruptionsAllowed, budget.Status.CurrentHealthy = 1, 2
	if _, err = budgets.UpdateStatus(p.ctx, budget, metav1.UpdateOptions{}); err != nil {
		return "", err
	}
	if err = evict(); err != nil {
		return "", err
	}
	return fmt.Sprintf("on node %s; refused=%t(%s) gone=%t", bound.Spec.NodeName, apierrors.IsTooManyRequests(full),
		causes(full), apierrors.IsNotFound(evict())), nil
}

// recordEvents says a thing twice, which a recorder writes as one Event with a count.
func recordEvents(p *player) (string, error) {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: p.typed.CoreV1().Events(p.namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "clients"})
	web, err := p.typed.AppsV1().Deployments(p.namespace).Get(p.ctx, "web", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	for range 2 {
		recorder.Event(web, corev1.EventTypeNormal, "Tested", "client-go was here")
	}
	var found *corev1.EventList
	err = wait.PollUntilContextTimeout(p.ctx, 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		found, err = p.typed.CoreV1().Events(p.namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=web,reason=Tested,involvedObject.uid=" + string(web.UID),
		})
		return err == nil && len(found.Items) == 1 && found.Items[0].Count == 2, err
	})
	if err != nil {
		return "", err
	}
	event := found.Items[0]
	return fmt.Sprintf("%s %s x%d from %s", event.Reason, event.Message, event.Count, event.Source.Component), nil
}

// electLeader lets two candidates run for one Lease; the first releases it.
func electLeader(p *player) (string, error) {
	changes := make(chan string, 10)
	runFor := func(name string, ctx context.Context) error {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, p.namespace, "leader",
			p.typed.CoreV1(), p.typed.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
		if err != nil {
			return err
		}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 5 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 200 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { changes <- name + " leads" },
				OnStoppedLeading: func() { changes <- name + " stops" },
			},
		})
		if err != nil {
			return err
		}
		go elector.Run(ctx)
		return nil
	}
	next := func() string {
		select {
		case said := <-changes:
			return said
		case <-time.After(20 * time.Second):
			return "nothing"
		}
	}
	first, release := context.WithCancel(p.ctx)
	defer release()
	if err := runFor("first", first); err != nil {
		return "", err
	}
	said := next()
	second, cancel := context.WithCancel(p.ctx)
	if err := runFor("second", second); err != nil {
		cancel()
		return "", err
	}
	release()
	said += ", " + next() + ", " + next()
	lease, err := p.typed.CoordinationV1().Leases(p.namespace).Get(p.ctx, "leader", metav1.GetOptions{})
	cancel()
	if err != nil {
		return "", err
	}
	said += fmt.Sprintf(", held by %s after %d changes, ", ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.LeaseTransitions, 0))
	return said + next(), nil
}
