#!/bin/bash
# A server may answer a request before it has read all of it, and close: too large, or not
# allowed. If bytes are unread when it closes, its kernel resets the connection. Linux gives a
# direct client the answer all the same, as it had arrived before. A proxy that is still sending
# loses it often: HAProxy 2.6.12 then closes the client's connection without any answer, though
# it has "timeout server", and nginx 1.22.1 answers 502. Both pass the answer on if the server
# closes only its own side and reads on until the proxy has closed.
# So claimq reads on for a while after every refusal (Farewell in api/door/conn.go).
# Source: RFC 9112, section 9.6, asks servers for that; what proxies make of the reset was seen.
# Needs Debian 12 on amd64 with its package mirror, Python 3, curl, and the libraries haproxy and
# nginx are linked with. Fails if the behaviour is no longer there.
set -euo pipefail
dir=$(mktemp -d)
host=127.31.0.1 # an address of loopback with all ports free
trap 'kill $(jobs -p) 2>"$dir/kill" || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -qq haproxy=2.6.12-1+deb12u4 nginx=1.22.1-9+deb12u9 2>apt.err || { cat apt.err; exit 1; }
for package in *.deb; do dpkg -x "$package" .; done
cat >server.py <<'PY'
import contextlib, socket, sys, threading

ANSWER = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

def serve(conn, reads_on):
    with conn, contextlib.suppress(OSError):  # the proxy has closed
        conn.recv(4096)
        conn.sendall(ANSWER)
        if reads_on:
            conn.shutdown(socket.SHUT_WR)
            while conn.recv(1 << 16):
                pass

def listen(reads_on):
    listener = socket.create_server(("127.0.0.1", 0))
    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0], reads_on), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]

print(listen(False), listen(True), flush=True)
sys.stdin.read()
PY
mkfifo hold
python3 server.py <hold >ports &
exec 3>hold
until [ -s ports ]; do sleep 0.1; done
read -r closes reads_on <ports
cat >haproxy.cfg <<CFG
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
listen closes
  bind $host:8001
  server s 127.0.0.1:$closes
listen reads-on
  bind $host:8002
  server s 127.0.0.1:$reads_on
CFG
cat >nginx.conf <<CFG
daemon off;
pid $dir/nginx.pid;
events {}
http {
  access_log off;
  client_max_body_size 100m;
  client_body_temp_path $dir/t1; proxy_temp_path $dir/t2; fastcgi_temp_path $dir/t3; uwsgi_temp_path $dir/t4; scgi_temp_path $dir/t5;
  server { listen $host:8003; location / { proxy_pass http://127.0.0.1:$closes; } }
  server { listen $host:8004; location / { proxy_pass http://127.0.0.1:$reads_on; } }
}
CFG
usr/sbin/haproxy -f haproxy.cfg >haproxy.log 2>&1 &
usr/sbin/nginx -c "$dir/nginx.conf" -e "$dir/nginx.log" &
for port in 8001 8002 8003 8004; do
	until (exec 4<>"/dev/tcp/$host/$port") 2>connect.err; do sleep 0.1; done
done
head -c 20000000 /dev/zero >body
# Prints each kind of answer that 40 clients get once; 000 means no answer.
answers() {
	for _ in $(seq 40); do
		curl --silent --max-time 20 --output answer --write-out '%{http_code}\n' --header Expect: --data-binary @body "http://$1/" || true
	done | sort -u | xargs
}
{
	usr/sbin/haproxy -v | grep -o 'HAProxy version [0-9.]*'
	echo "the server closes: none $(answers "127.0.0.1:$closes"), HAProxy $(answers "$host:8001"), nginx $(answers "$host:8003")"
	echo "it reads on: none $(answers "127.0.0.1:$reads_on"), HAProxy $(answers "$host:8002"), nginx $(answers "$host:8004")"
} | tee seen.txt
echo "expected: 413, everywhere"
diff - seen.txt <<'SEEN'
HAProxy version 2.6.12
the server closes: none 413, HAProxy 000 413, nginx 413 502
it reads on: none 413, HAProxy 413, nginx 413
SEEN
echo "seen: as the comment says"
