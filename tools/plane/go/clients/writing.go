package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// writeObjects sees the errors that controllers act on.
func writeObjects(p *player) (string, error) {
	maps := p.typed.CoreV1().ConfigMaps(p.namespace)
	made, err := maps.Create(p.ctx, configMap("a", "k", "1"), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	_, again := maps.Create(p.ctx, configMap("a", "k", "1"), metav1.CreateOptions{})
	made.Data["k"] = "2"
	if _, err = maps.Update(p.ctx, made, metav1.UpdateOptions{}); err != nil {
		return "", err
	}
	_, stale := maps.Update(p.ctx, made, metav1.UpdateOptions{})
	tries := 0
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		tries++
		if tries > 1 {
			if made, err = maps.Get(p.ctx, "a", metav1.GetOptions{}); err != nil {
				return err
			}
		}
		made.Data["k"] = "3"
		_, err := maps.Update(p.ctx, made, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return "", err
	}
	_, invalid := maps.Create(p.ctx, configMap("Bad_Name", "k", "1"), metav1.CreateOptions{})
	wrongUID := types.UID("00000000-0000-4000-8000-000000000000")
	precondition := maps.Delete(p.ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrongUID}})
	if err = maps.Delete(p.ctx, "a", metav1.DeleteOptions{}); err != nil {
		return "", err
	}
	_, missing := maps.Get(p.ctx, "a", metav1.GetOptions{})
	return fmt.Sprintf("exists=%t conflict=%t tries=%d invalid=%t(%s) precondition=%t missing=%t",
		apierrors.IsAlreadyExists(again), apierrors.IsConflict(stale), tries,
		apierrors.IsInvalid(invalid), causes(invalid), apierrors.IsConflict(precondition), apierrors.IsNotFound(missing)), nil
}

// patchEachWay changes a Deployment by the three kinds of patch, and one of its conditions by its status.
func patchEachWay(p *player) (string, error) {
	deployments := p.typed.AppsV1().Deployments(p.namespace)
	if _, err := deployments.Create(p.ctx, deployment("web"), metav1.CreateOptions{}); err != nil {
		return "", err
	}
	patch := func(kind types.PatchType, body string, more ...string) (*appsv1.Deployment, error) {
		return deployments.Patch(p.ctx, "web", kind, []byte(body), metav1.PatchOptions{}, more...)
	}
	merged, err := patch(types.StrategicMergePatchType,
		`{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"B","value":"2"}]}]}}}}`)
	if err != nil {
		return "", err
	}
	var env []string
	for _, item := range merged.Spec.Template.Spec.Containers[0].Env {
		env = append(env, item.Name+"="+item.Value)
	}
	slices.Sort(env)
	if merged, err = patch(types.MergePatchType, `{"spec":{"replicas":3}}`); err != nil {
		return "", err
	}
	if _, err = patch(types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":3},{"op":"add","path":"/metadata/labels","value":{"tier":"x"}}]`); err != nil {
		return "", err
	}
	_, failed := patch(types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":9}]`)
	status, err := patch(types.MergePatchType, `{"spec":{"replicas":9},"status":{"replicas":2,"observedGeneration":1}}`, "status")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("env %s, image %s; replicas %d; failed test invalid=%t; status %d of %d",
		strings.Join(env, " "), merged.Spec.Template.Spec.Containers[0].Image, *merged.Spec.Replicas,
		apierrors.IsInvalid(failed), status.Status.Replicas, *status.Spec.Replicas), nil
}

// applyByOwners lets two managers apply to one field.
func applyByOwners(p *player) (string, error) {
	deployments := p.typed.AppsV1().Deployments(p.namespace)
	config := func(replicas int32) *appsapply.DeploymentApplyConfiguration {
		return appsapply.Deployment("web", p.namespace).WithSpec(appsapply.DeploymentSpec().WithReplicas(replicas))
	}
	if _, err := deployments.Apply(p.ctx, config(4), metav1.ApplyOptions{FieldManager: "first", Force: true}); err != nil {
		return "", err
	}
	_, conflict := deployments.Apply(p.ctx, config(5), metav1.ApplyOptions{FieldManager: "second"})
	if _, err := deployments.Apply(p.ctx, config(4), metav1.ApplyOptions{FieldManager: "second"}); err != nil {
		return "", fmt.Errorf("sharing: %w", err)
	}
	taken, err := deployments.Apply(p.ctx, config(6), metav1.ApplyOptions{FieldManager: "second", Force: true})
	if err != nil {
		return "", err
	}
	var owners []string
	for _, entry := range taken.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			owners = append(owners, entry.Manager)
		}
	}
	slices.Sort(owners)
	extracted, err := appsapply.ExtractDeployment(taken, "second")
	if err != nil {
		return "", err
	}
	condition := appsapply.DeploymentCondition().WithType("Available").WithStatus("True")
	status := appsapply.Deployment("web", p.namespace).WithStatus(appsapply.DeploymentStatus().WithConditions(condition))
	updated, err := deployments.ApplyStatus(p.ctx, status, metav1.ApplyOptions{FieldManager: "teller", Force: true})
	if err != nil {
		return "", fmt.Errorf("status: %w", err)
	}
	return fmt.Sprintf("conflict=%t(%s) replicas %d, appliers %s, second owns replicas=%d, condition %s",
		apierrors.IsConflict(conflict), causes(conflict), *taken.Spec.Replicas, strings.Join(owners, " "),
		ptr.Deref(extracted.Spec.Replicas, 0), updated.Status.Conditions[0].Type), nil
}

// causes gives the fields that a refusal names.
func causes(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return fmt.Sprint(err)
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, string(cause.Type)+" "+cause.Field)
	}
	return strings.Join(fields, ", ")
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "main", Image: "nginx:1.27", Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
				}}},
			},
		},
	}
}
