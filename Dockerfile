# A static binary, a user without rights, nothing else:
#   docker build -t claimq:dev --build-arg VERSION=$(git describe --tags --always) .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/claimq ./cmd/claimq \
 && install -d -m 700 /out/data

FROM scratch
LABEL org.opencontainers.image.title="claimq" \
      org.opencontainers.image.source="https://github.com/claimq/claimq" \
      org.opencontainers.image.licenses="Apache-2.0"
# For the commands that call servers with certificates of public authorities.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY LICENSE /LICENSE
COPY --from=build --chown=65532:65532 /out/data /var/lib/claimq
COPY --from=build /out/claimq /usr/bin/claimq
USER 65532:65532
ENV CLAIMQ_DATA_DIR=/var/lib/claimq
VOLUME /var/lib/claimq
EXPOSE 7400 7401
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/claimq"]
CMD ["server"]
