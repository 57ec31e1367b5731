// effect-distributed-lock, beside which this library is measured, is written for Effect 3 and ioredis 5: it gets them, and not those of the workspace.
exports.hooks = {
  readPackage: (manifest) =>
    manifest.name === "effect-distributed-lock"
      ? { ...manifest, dependencies: { effect: "3.22.4", ioredis: "5.11.1" }, peerDependencies: {} }
      : manifest
}
