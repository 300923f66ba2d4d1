const { AsyncLocalStorage } = require('node:async_hooks');
const { Script } = require('node:vm');
const { default: Runtime } = require('jest-runtime');

// jest-circus uses an AsyncLocalStorage for each test file and never disables it. Before Node 24, each of them slows down every promise of the
// process: after 150 test files, an `await` takes 24 µs instead of 0.1.
const usedStorages = new Set();
for (const method of ['run', 'enterWith']) {
  const original = AsyncLocalStorage.prototype[method];
  AsyncLocalStorage.prototype[method] = function (...args) {
    usedStorages.add(this);
    return original.apply(this, args);
  };
}

/**
 * jest's runtime, at a lower cost per test file.
 *
 * Compiles the files of jest and of the bundled packages once per process instead of once per test file: V8 caches the
 * code of a `Script` by its text, but not that of `compileFunction`, which jest calls.
 */
module.exports = class extends Runtime {
  constructor(config, environment, ...others) {
    super(config, environment, ...others);
    const { executor } = this;
    if (typeof executor?.compile !== 'function') throw new Error('This jest-runtime has no method `executor.compile`.');
    const compileWithoutCache = executor.compile.bind(executor);
    const head = `(function(${executor.injectedModuleParameters.join()}){`;
    executor.compile = (source, filename) => {
      const context = environment.getVmContext();
      // V8 doesn't cache a script that has `importModuleDynamically`.
      if (context === null || source.includes('import(')) return compileWithoutCache(source, filename);
      try {
        return new Script(`${head}${source}\n})`, { filename, columnOffset: -head.length }).runInContext(context);
      } catch {
        // A syntax error: jest adds the file and an explanation to it.
        return compileWithoutCache(source, filename);
      }
    };
  }

  teardown() {
    super.teardown();
    for (const storage of usedStorages) storage.disable();
    usedStorages.clear();
  }
};
