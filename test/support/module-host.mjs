// Runs modules in one process, each like a separate program with its own environment variables and output. Loads the
// package only once, which takes most of a short program's CPU time.
//
// Argument: a JSON list of { url, env }. Prints JSON lines with the index of the module: { index, stream, text } for its output, and
// { index, hasEnded: true } when it has been evaluated, { index, hasFailed: true } after an error, or when it sets an exit code other than 0. An error
// that belongs to no module has no index.
import { AsyncLocalStorage } from 'node:async_hooks';
import { inspect } from 'node:util';

const modules = JSON.parse(process.argv[2]);
const current = new AsyncLocalStorage();
const { env } = process;
const print = process.stdout.write.bind(process.stdout);
const report = (message) => print(`${JSON.stringify({ index: current.getStore()?.index, ...message })}\n`);

Object.defineProperty(process, 'env', { get: () => current.getStore()?.env ?? env });
for (const stream of ['stdout', 'stderr'])
  process[stream].write = (chunk, ...rest) => {
    report({ stream, text: String(chunk) });
    const done = rest.find((each) => typeof each === 'function');
    if (done) process.nextTick(done);
    return true;
  };

// Node doesn't allow to redefine `process.exitCode`.
globalThis.process = new Proxy(process, {
  set: (target, name, value) => {
    if (name === 'exitCode' && value) report({ hasFailed: true });
    return Reflect.set(target, name, value);
  },
});

const fail = (error) => {
  report({ hasFailed: true, stream: 'stderr', text: inspect(error) });
};
process.on('uncaughtException', fail);

modules.forEach(({ url, env }, index) =>
  current.run({ index, env }, () => import(url).then(() => report({ hasEnded: true }), fail)),
);
