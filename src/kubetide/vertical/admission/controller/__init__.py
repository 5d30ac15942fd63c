"""Answers reviews over HTTPS, keeps certificates, registers itself."""

from kubetide.vertical.admission.controller.controller import AdmissionController

__all__ = ["AdmissionController"]
