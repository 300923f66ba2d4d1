// Runs `rx-trade-feed serve --upstream` for the demo and for its test.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const command = new URL('../bin/rx-trade-feed.js', import.meta.url).pathname;

/**
 * Starts a service with the transactions of a node.
 *
 * @returns the options of its feed; `until`, which resolves when the output matches; and `close`
 */
export const serveUpstream = async (upstream) => {
  const child = spawn(process.execPath, [command, 'serve', '--plan', 'developer', '--upstream', upstream]);
  const closed = once(child, 'close');
  let text = '';
  let check = () => undefined;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part) => {
      text += part;
      check();
    });
  }
  const until = (pattern) =>
    new Promise((done, fail) => {
      check = () => pattern.test(text) && done(text);
      check();
      closed.then(() => fail(new Error(`The service ended: ${text}`)));
    });
  const exported = (name) => new RegExp(`^ {2}export ${name}=(\\S+)$`, 'm').exec(text)[1];
  await until(/rx-trade-feed listen/);
  return {
    options: { baseUrl: exported('TRADE_FEED_BASE_URL'), apiKey: exported('TRADE_FEED_API_KEY') },
    until,
    close: () => {
      child.kill();
      return closed;
    },
  };
};
