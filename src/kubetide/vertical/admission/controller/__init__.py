"""Answers reviews over HTTPS, keeps certificates, registers itself."""

from kubetide.vertical.admission.controller.controller import LOOP, AdmissionController

__all__ = ["LOOP", "AdmissionController"]
