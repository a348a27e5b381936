"""Blocks of metadata as cameras, agencies and photo programs write them."""

import struct

from PIL import Image

_SPACES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "xmp": "http://ns.adobe.com/xap/1.0/",
    "xmpRights": "http://ns.adobe.com/xap/1.0/rights/",
    "photoshop": "http://ns.adobe.com/photoshop/1.0/",
    "exif": "http://ns.adobe.com/exif/1.0/",
    "Iptc4xmpCore": "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/",
    "Iptc4xmpExt": "http://iptc.org/std/Iptc4xmpExt/2008-02-29/",
    "lr": "http://ns.adobe.com/lightroom/1.0/",
    "digiKam": "http://www.digikam.org/ns/1.0/",
    "cc": "http://creativecommons.org/ns#",
}


def xmp(body="", attributes=""):
    """A packet with elements and attributes of one description."""
    spaces = " ".join(f'xmlns:{prefix}="{address}"' for prefix, address in _SPACES.items())
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
        '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        f'<rdf:Description rdf:about="" {spaces} {attributes}>{body}</rdf:Description>'
        '</rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
    ).encode()


def listed(name, *texts, kind="Bag"):
    items = "".join(f"<rdf:li>{text}</rdf:li>" for text in texts)
    return f"<{name}><rdf:{kind}>{items}</rdf:{kind}></{name}>"


def in_languages(name, **texts):
    """A language alternative; `x_default` is `x-default`."""
    items = "".join(
        f'<rdf:li xml:lang="{lang.replace("_", "-")}">{text}</rdf:li>'
        for lang, text in texts.items()
    )
    return f"<{name}><rdf:Alt>{items}</rdf:Alt></{name}>"


def iptc(*pairs, utf8=True):
    """An IPTC-IIM block of (number, bytes or text)."""
    sets = [(1, 90, b"\x1b%G")] if utf8 else []
    for number, value in pairs:
        sets.append((2, number, value.encode() if isinstance(value, str) else value))
    return b"".join(
        b"\x1c" + bytes([record, number]) + struct.pack(">H", len(raw)) + raw
        for record, number, raw in sets
    )


def with_iptc(jpeg, block):
    """A JPEG with the block in the segment that Photoshop writes."""
    resource = (
        b"8BIM\x04\x04\0\0" + struct.pack(">I", len(block)) + block + b"\0" * (len(block) % 2)
    )
    data = b"Photoshop 3.0\0" + resource
    return jpeg[:2] + b"\xff\xed" + struct.pack(">H", len(data) + 2) + data + jpeg[2:]


def exif(gps=None, **values):
    """An EXIF block; `gps` is latitude and longitude as (degrees, minutes, seconds, side)."""
    tags = {
        "description": 0x010E,
        "artist": 0x013B,
        "copyright": 0x8298,
        "changed": 0x0132,
        "orientation": 0x0112,
        "rating": 0x4746,
    }
    block = Image.Exif()
    for name, value in values.items():
        if name == "taken":
            block.get_ifd(0x8769)[0x9003] = value
        elif name == "windows_title":
            block[0x9C9B] = (value + "\0").encode("utf-16-le")
        elif name == "windows_keywords":
            block[0x9C9E] = (value + "\0").encode("utf-16-le")
        else:
            block[tags[name]] = value.encode() if isinstance(value, str) else value
    for number, (*parts, side) in enumerate(gps or ()):
        block.get_ifd(0x8825)[1 + 2 * number] = side
        block.get_ifd(0x8825)[2 + 2 * number] = tuple(map(float, parts))
    return block.tobytes()
