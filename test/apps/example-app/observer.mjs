// Another client of the relay. It receives the same as the page, and is never reloaded.
import { messagesOf } from './network.mjs';

/** Reads a stream until `stop()` is called. */
export const observe = async (url) => {
  const stop = new AbortController();
  const response = await fetch(url, { signal: stop.signal });
  const chunks = [];
  let onChunk = () => {};
  const done = (async () => {
    for await (const chunk of response.body) {
      chunks.push(Buffer.from(chunk));
      onChunk();
    }
  })().catch(() => undefined);
  return {
    messages: () => messagesOf(chunks),
    /** Returns the number of received bytes. */
    bytes: () => chunks.reduce((sum, chunk) => sum + chunk.length, 0),
    /** Waits until the messages pass a test. */
    async until(passes) {
      while (!passes(messagesOf(chunks))) await new Promise((resolve) => (onChunk = resolve));
    },
    async stop() {
      stop.abort();
      await done;
    },
  };
};
