"""An S3-compatible server for tests: strict where the real ones are, and hostile when it is asked to be.

It checks every signature (AWS Signature Version 4, worked out here from what came over the wire), the hash of every
body, parts, their order and least size; it lists in small pages. Objects are in memory.

    with ObjectServer() as server:
        server.url                      # the endpoint
        server.objects["bucket/key"]    # bytes
        server.uploads                  # {id: Upload}, not finished
        server.fault = lambda request: "503" if request.method == "PUT" else None

A fault is a word:
    403 404 500 503 501     that status, with an error document; 301: a redirection
    cut                     the connection is closed before an answer
    reset                   it is reset
    lost                    what was asked is done, then the connection is closed
    half                    half of the answer's body, then the end
    short                   a 206 that holds less than was asked for, and says so
    flip                    one bit of what was read is wrong
    etag                    the answer's ETag is another one's
    damage                  stored with one bit flipped, its ETag that of the damaged bytes
    hang                    nothing is answered until server.release is set
    slow                    the body is taken slowly: a piece at a time, while `server.slow()` is true

Its clock is `server.ahead` seconds ahead; it refuses what was signed a quarter of an hour before or after that, in the
words of a real one, or in those for a wrong key (`server.skew_code`).
"""

import base64
import calendar
import collections
import hashlib
import hmac
import http.server
import re
import socket
import struct
import threading
import time
import urllib.parse
import xml.sax.saxutils

KEY_ID = "CELLARTESTKEY"
SECRET = "a/secret+of/tests"
PART_BYTES_MIN = 5 << 20

Request = collections.namedtuple("Request", "method key query number")


class Upload:
    def __init__(self, key):
        self.key = key
        self.parts = {}


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1:] if data else data


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *arguments):
        pass

    def date_time_string(self, timestamp=None):
        return super().date_time_string(time.time() + self.server.ahead if timestamp is None else timestamp)

    # --- signatures

    def signature_fault(self, body):
        """Why the request is refused: (code, message), or None."""
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
                             self.headers.get("Authorization", ""))
        if found is None:
            return "AccessDenied", "no signature"
        scope = found.group(1).split("/")
        if len(scope) != 5 or scope[3:] != ["s3", "aws4_request"]:
            return "AuthorizationHeaderMalformed", "the scope is wrong"
        if scope[0] != self.server.key_id:
            return "InvalidAccessKeyId", "there is no such key"
        if scope[2] != self.server.region:
            return "AuthorizationHeaderMalformed", f"the region is {self.server.region}"
        signed_at = calendar.timegm(time.strptime(self.headers["x-amz-date"], "%Y%m%dT%H%M%SZ"))
        if abs(signed_at - time.time() - self.server.ahead) > 900:
            return self.server.skew_code, "because"
        token = self.headers.get("x-amz-security-token", "")
        if token != self.server.session_token:
            return "InvalidToken", "the session token is not the one"
        content = self.headers.get("x-amz-content-sha256", "")
        if content != hashlib.sha256(body).hexdigest():
            return "XAmzContentSHA256Mismatch", "the body is not the one that was signed"
        signed = found.group(2).split(";")
        if signed != sorted(signed) or "host" not in signed or "x-amz-content-sha256" not in signed:
            return "AccessDenied", "headers are not signed"
        for name in self.headers:
            if name.lower().startswith("x-amz-") and name.lower() not in signed:
                return "AccessDenied", f"{name} is not signed"
        path, _, query = self.path.partition("?")

        def encoded(text, safe=""):
            return urllib.parse.quote(urllib.parse.unquote(text), safe="-_.~" + safe)
        pairs = sorted((encoded(name), encoded(value)) for name, _, value in
                       (pair.partition("=") for pair in query.split("&") if pair))
        headers = "".join(f"{name}:{' '.join(','.join(self.headers.get_all(name, [])).split())}\n" for name in signed)
        canonical = "\n".join([self.command, encoded(path, "/"), "&".join(f"{a}={b}" for a, b in pairs), headers,
                               ";".join(signed), content])
        to_sign = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], "/".join(scope[1:]),
                             hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + self.server.secret).encode()
        for word in scope[1:]:
            key = hmac.new(key, word.encode(), hashlib.sha256).digest()
        if hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest() != found.group(3):
            return "SignatureDoesNotMatch", "the signature is another one: " + canonical
        return None

    # --- answers

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name == "Content-Length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.acting == "half":
            self.wfile.write(body[:len(body) // 2])
            self.close_connection = True
        else:
            self.wfile.write(body)

    def refuse(self, status, code, message="because"):
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>'
                f"{xml.sax.saxutils.escape(message)}</Message></Error>").encode()
        self.answer(status, body, [("Content-Type", "application/xml")])

    def document(self, name, text):
        self.answer(200, f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                         f"{text}</{name}>".encode(), [("Content-Type", "application/xml")])

    def read_body(self):
        left = int(self.headers.get("Content-Length", 0))
        pieces = []
        while left > 0:
            while self.acting == "slow" and self.server.slow():
                time.sleep(0.01)
            piece = self.rfile.read(min(left, 1 << 16))
            if not piece:
                return None
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    # --- what is asked

    def handle_request(self):
        path, _, query = self.path.partition("?")
        self.query = {name: urllib.parse.unquote(value) for name, _, value in
                      (pair.partition("=") for pair in query.split("&") if pair)}
        self.key = urllib.parse.unquote(path[1:])
        with self.server.lock:
            self.server.requests.append(Request(self.command, self.key, self.query, len(self.server.requests)))
            self.acting = self.server.fault(self.server.requests[-1])
        body = self.read_body()
        if body is None:
            self.close_connection = True
            return
        if self.acting == "hang":
            self.server.release.wait()
        if self.acting == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        if self.acting in ("cut", "hang", "reset"):
            self.close_connection = True
            return
        if self.acting == "301":
            self.answer(301, b"", [("Location", "http://127.0.0.1:1/elsewhere"), ("x-amz-bucket-region", "mars-1")])
            return
        if self.acting in ("403", "404", "500", "501", "503"):
            codes = {"403": "AccessDenied", "404": "NoSuchBucket", "500": "InternalError", "501": "NotImplemented",
                     "503": "SlowDown"}
            self.refuse(int(self.acting), codes[self.acting])
            return
        refused = self.signature_fault(body)
        if refused is not None:
            self.server.refusals.append(refused)
            self.refuse(400 if refused[0] == "XAmzContentSHA256Mismatch" else 403, *refused)
            return
        md5 = self.headers.get("Content-MD5")
        if md5 is not None and base64.b64decode(md5) != hashlib.md5(body).digest():
            self.refuse(400, "BadDigest")
            return
        bucket = self.key.split("/")[0]
        if bucket not in self.server.buckets:
            self.refuse(404, "NoSuchBucket", f"there is no bucket {bucket}")
            return
        if self.acting == "damage":
            body = flipped(body)
        with self.server.lock:
            act = getattr(self, "ask_" + self.command)
            if self.acting == "lost":
                self.answer = lambda *words: None
                self.close_connection = True
            act(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_request

    def etag(self, data):
        return '"' + hashlib.md5(b"another one" if self.acting == "etag" else data).hexdigest() + '"'

    def ask_PUT(self, body):
        if "uploadId" not in self.query:
            self.server.objects[self.key] = body
            self.server.etags[self.key] = '"' + hashlib.md5(body).hexdigest() + '"'
            self.answer(200, b"", [("ETag", self.etag(body))])
            return
        upload = self.server.uploads.get(self.query["uploadId"])
        if upload is None or upload.key != self.key:
            self.refuse(404, "NoSuchUpload")
            return
        upload.parts[int(self.query["partNumber"])] = body
        self.answer(200, b"", [("ETag", self.etag(body))])

    def ask_POST(self, body):
        if "uploads" in self.query:
            # With what has to be encoded in a query.
            name = f"up+{len(self.server.requests)}/="
            self.server.uploads[name] = Upload(self.key)
            self.document("InitiateMultipartUploadResult", f"<Key>{self.key}</Key><UploadId>{name}</UploadId>")
            return
        upload = self.server.uploads.get(self.query["uploadId"])
        if upload is None:
            self.refuse(404, "NoSuchUpload")
            return
        asked = re.findall(r"<Part><PartNumber>(\d+)</PartNumber><ETag>(.*?)</ETag></Part>", body.decode())
        parts = []
        for number, tag in asked:
            data = upload.parts.get(int(number))
            if data is None or xml.sax.saxutils.unescape(tag, {"&quot;": '"'}) != '"' + hashlib.md5(data).hexdigest() + '"':
                self.refuse(400, "InvalidPart")
                return
            parts.append(data)
        if [int(number) for number, _ in asked] != list(range(1, len(asked) + 1)):
            self.refuse(400, "InvalidPartOrder")
            return
        if any(len(data) < PART_BYTES_MIN for data in parts[:-1]):
            self.refuse(400, "EntityTooSmall")
            return
        if self.acting == "200":  # found out too late
            self.answer(200, b"<Error><Code>InternalError</Code><Message>late</Message></Error>")
            return
        data = b"".join(parts)
        tag = f'"{hashlib.md5(b"".join(hashlib.md5(part).digest() for part in parts)).hexdigest()}-{len(parts)}"'
        self.server.objects[self.key] = data
        self.server.etags[self.key] = tag
        del self.server.uploads[self.query["uploadId"]]
        self.document("CompleteMultipartUploadResult", f"<Key>{self.key}</Key><ETag>{xml.sax.saxutils.escape(tag)}</ETag>")

    def ask_DELETE(self, body):
        if "uploadId" in self.query:
            if self.server.uploads.pop(self.query["uploadId"], None) is None:
                self.refuse(404, "NoSuchUpload")
                return
        else:
            self.server.objects.pop(self.key, None)
        self.answer(204, b"", [("Content-Length", "0")])

    def ask_HEAD(self, body):
        data = self.server.objects.get(self.key)
        if data is None:
            self.answer(404)
        else:
            self.answer(200, b"", [("Content-Length", str(len(data))), ("ETag", self.server.etags[self.key])])

    def ask_GET(self, body):
        if "uploads" in self.query:
            self.list_uploads()
            return
        if "list-type" in self.query:
            self.list_objects()
            return
        data = self.server.objects.get(self.key)
        if data is None:
            self.refuse(404, "NoSuchKey")
            return
        if self.headers.get("If-Match", self.server.etags[self.key]) != self.server.etags[self.key]:
            self.refuse(412, "PreconditionFailed")
            return
        total = len(data)
        headers = [("ETag", self.server.etags[self.key])]
        status = 200
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if found:
            first, last = int(found.group(1)), min(int(found.group(2)), total - 1)
            if self.acting == "short":
                last = first + (last - first) // 2
            if first >= total:
                self.refuse(416, "InvalidRange")
                return
            data = data[first:last + 1]
            headers.append(("Content-Range", f"bytes {first}-{last}/{total}"))
            status = 206
        self.answer(status, flipped(data) if self.acting == "flip" else data, headers)

    def keys_below(self, names):
        bucket = self.key.rstrip("/") + "/"
        prefix = self.query.get("prefix", "")
        below = sorted(name[len(bucket):] for name in names if name.startswith(bucket + prefix))
        return [name for name in below if "/" not in name[len(prefix):]] if self.query.get("delimiter") == "/" else below

    def list_objects(self):
        if self.server.endless:
            self.server.endless -= 1
            self.document("ListBucketResult", ENDLESS_PAGE.replace("PREFIX", self.query["prefix"]) % self.server.endless)
            return
        keys = [key for key in self.keys_below(self.server.objects) if key > self.query.get("continuation-token", "")[::-1]]
        page = keys[:self.server.page]
        bucket = self.key.rstrip("/") + "/"
        text = "".join(f"<Contents><Key>{xml.sax.saxutils.escape(key)}</Key>"
                       f"<ETag>{xml.sax.saxutils.escape(self.server.etags[bucket + key], {chr(34): '&quot;'})}</ETag>"
                       f"<Size>{len(self.server.objects[bucket + key])}</Size></Contents>" for key in page)
        more = len(keys) > len(page)
        text += f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        if more:
            text += f"<NextContinuationToken>{page[-1][::-1]}</NextContinuationToken>"
        self.document("ListBucketResult", text)

    def list_uploads(self):
        bucket = self.key.rstrip("/") + "/"
        keys = self.keys_below({upload.key for upload in self.server.uploads.values()})
        found = sorted((upload.key[len(bucket):], name) for name, upload in self.server.uploads.items()
                       if upload.key[len(bucket):] in keys)
        marker = (self.query.get("key-marker", ""), self.query.get("upload-id-marker", ""))
        found = [pair for pair in found if pair > marker]
        page = found[:self.server.page]
        text = "".join(f"<Upload><Key>{key}</Key><UploadId>{name}</UploadId></Upload>" for key, name in page)
        more = len(found) > len(page)
        text += f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        if more:
            text += f"<NextKeyMarker>{page[-1][0]}</NextKeyMarker><NextUploadIdMarker>{page[-1][1]}</NextUploadIdMarker>"
        self.document("ListMultipartUploadsResult", text)


# Nearly all that an answer may have.
ENDLESS_PAGE = "".join("<Contents><Key>PREFIX%s%06d</Key><ETag>e</ETag><Size>1</Size></Contents>" % ("n" * 900, i)
                       for i in range(7000)) + \
    "<IsTruncated>true</IsTruncated><NextContinuationToken>t%d</NextContinuationToken>"


class ObjectServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, tls=None, page=3):
        super().__init__(("127.0.0.1", 0), Handler)
        self.scheme = "http"
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
            self.scheme = "https"
        self.key_id, self.secret, self.session_token, self.region = KEY_ID, SECRET, "", "us-east-1"
        self.buckets = {"bucket"}
        self.page = page
        self.ahead = 0
        self.skew_code = "RequestTimeTooSkewed"
        self.lock = threading.RLock()
        self.release = threading.Event()
        self.clear()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def clear(self):
        self.objects, self.etags, self.uploads, self.requests, self.refusals = {}, {}, {}, [], []
        self.fault = lambda request: None
        self.endless = 0  # pages of a list that are answered with names of its own
        self.slow = lambda: False

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": self.key_id, "AWS_SECRET_ACCESS_KEY": self.secret, "AWS_ENDPOINT_URL": self.url,
                "no_proxy": "127.0.0.1"}

    def handle_error(self, request, client_address):
        pass  # clients that were killed

    def __enter__(self):
        return self

    def __exit__(self, *words):
        self.release.set()
        self.shutdown()
        self.server_close()
