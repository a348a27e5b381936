"""Multipart forms, and the picture that they carry."""

from PIL import Image

from tests.support.pictures import encoded

FORM = "multipart/form-data; boundary=cut"
LIMIT = 100_000


def picture(width=48, height=32):
    return Image.linear_gradient("L").resize((width, height)).convert("RGB")


PNG = encoded(picture(), "PNG")


def part(name, content, extra=""):
    head = f'--cut\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n\r\n'
    return head.encode() + content + b"\r\n"


def form(*parts):
    return b"".join(parts) + b"--cut--\r\n"
