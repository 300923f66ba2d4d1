/**
 * Returns a function that disables every AsyncLocalStorage that was used since its last call.
 *
 * jest-circus uses one for each test file and never disables it. Before Node 24, each of them slows down every promise of
 * the process: after 150 test files, an `await` takes 24 µs instead of 0.1.
 */
const releaseAsyncStorages = ({ prototype }) => {
  const used = new Set();
  for (const method of ['run', 'enterWith']) {
    const original = prototype[method];
    prototype[method] = function (...args) {
      used.add(this);
      return original.apply(this, args);
    };
  }
  return () => {
    for (const storage of used) storage.disable();
    used.clear();
  };
};

module.exports = { releaseAsyncStorages };
