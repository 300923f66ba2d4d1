// CommonJS, so that an import of any name reaches the error.
const forServers = (): never => {
  throw new Error(
    'rx-trade-feed is for servers; import rx-trade-feed/browser, and operators from rx-trade-feed/operators. ' +
      'A page must not have the API key, so it receives the feed from a relay. If this is a test in jsdom of code for ' +
      'servers, begin the test file with /** @jest-environment node */, or set ' +
      "testEnvironmentOptions: { customExportConditions: ['node', 'node-addons'] } in the jest.config.",
  );
};

// @ts-expect-error -- Only `export =` assigns `module.exports`; bundlers would list the names of other exports.
export = forServers();
