// Another client of the relay, which sees what the page sees, and is not reloaded.
import { messagesOf } from './network.mjs';

/** Reads a feed until it is stopped. */
export const observe = async (url) => {
  const stop = new AbortController();
  const answer = await fetch(url, { signal: stop.signal });
  const chunks = [];
  let heard = () => {};
  const done = (async () => {
    for await (const chunk of answer.body) {
      chunks.push(Buffer.from(chunk));
      heard();
    }
  })().catch(() => undefined);
  return {
    messages: () => messagesOf(chunks),
    /** How many bytes have come. */
    bytes: () => chunks.reduce((sum, chunk) => sum + chunk.length, 0),
    /** Waits until the messages pass a test. */
    async until(passes) {
      while (!passes(messagesOf(chunks))) await new Promise((resolve) => (heard = resolve));
    },
    async stop() {
      stop.abort();
      await done;
    },
  };
};
