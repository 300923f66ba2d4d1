// CommonJS, so that an import of any name reaches the error.
const forServers = (): never => {
  throw new Error(
    'rx-trade-feed is for servers; import rx-trade-feed/browser. A page must not have the API key, so it receives the feed from a relay.',
  );
};

// @ts-expect-error -- Only `export =` assigns `module.exports`; bundlers would list the names of other exports.
export = forServers();
