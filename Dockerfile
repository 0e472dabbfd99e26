# A static binary, a user without rights, nothing else:
#   docker build -t claimq:dev --build-arg VERSION=$(git describe --tags --always) .
# The digest says which image it is; the tag is for people.
FROM golang:1.26.8@sha256:3c3e25a4da13fd0478eed2df1eb35a0e667094a7124d3993a6a1d30f71c17e79 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The page's libraries come from npm, by web/package-lock.json.
RUN apt-get update && apt-get install -y --no-install-recommends npm && rm -rf /var/lib/apt/lists/* && web/libraries --need
ARG VERSION=dev
ARG TARGETARCH
# The very binary of a release's archive, and the licences of what it is made of.
RUN SOURCE_DATE_EPOCH=0 go -C jepsen run ./deploy/dist --version "$VERSION" --target "linux/${TARGETARCH:-$(go env GOARCH)}" --out /out/dist \
 && tar -xzf /out/dist/*.tar.gz --strip-components=1 -C /out \
 && install -d -m 700 /out/data

FROM scratch
LABEL org.opencontainers.image.title="claimq" \
      org.opencontainers.image.source="https://github.com/claimq/claimq" \
      org.opencontainers.image.licenses="Apache-2.0"
# For the commands that call servers with certificates of public authorities.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/LICENSE /out/THIRD_PARTY_NOTICES /
COPY --from=build --chown=65532:65532 /out/data /var/lib/claimq
COPY --from=build /out/claimq /usr/bin/claimq
USER 65532:65532
ENV CLAIMQ_DATA_DIR=/var/lib/claimq
VOLUME /var/lib/claimq
EXPOSE 7400 7401
STOPSIGNAL SIGTERM
# By the settings of the server, so they are to be variables or in the file of CLAIMQ_CONFIG.
HEALTHCHECK --interval=15s --timeout=6s --start-period=1m --retries=3 CMD ["/usr/bin/claimq", "health"]
ENTRYPOINT ["/usr/bin/claimq"]
CMD ["server"]
