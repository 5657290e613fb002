# Any image of Node.js 20.19 or newer on Debian.
ARG NODE_IMAGE=node:22-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build

# What runs, in the versions of the lock file: no development tools and no embedded PostgreSQL, but the clients for
# Redis and buckets, which npm leaves to whoever wants them.
FROM ${NODE_IMAGE} AS modules
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm pkg delete devDependencies \
  && npm pkg set $(node -p 'Object.entries(require("./package.json").peerDependencies).map(([name, range]) => `dependencies.${name}=${range}`).join(" ")') \
  && npm install --omit=dev --omit=optional --ignore-scripts

FROM ${NODE_IMAGE}
# Handlers may be programs that start others; as the first process of a container somebody must reap those.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=modules /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
COPY db db
COPY python python
# A settings file and handlers' relative paths are looked for in /srv; /data is for artifacts.
RUN ln -s /app/dist/cli/main.js /usr/local/bin/oracle-worker \
  && mkdir -p /data && chown 10001:10001 /srv /data
WORKDIR /srv
ENV NODE_ENV=production HEALTH_PORT=9464 ARTIFACTS=file:/data/artifacts
USER 10001:10001
EXPOSE 9464 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.HEALTH_PORT}/healthz`).then((page) => process.exit(page.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "oracle-worker"]
CMD ["work"]
