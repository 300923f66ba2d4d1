import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';

/** How long a browser may take to read the end of its answer, in ms. */
const graceMs = 1_000;

/** Waits until every answer is sent to its end, and cuts those that nobody reads. */
export const ended = async (responses: Iterable<Writable>): Promise<void> => {
  await Promise.all(Array.from(responses, endOf));
};

const endOf = async (response: Writable): Promise<void> => {
  try {
    await finished(response, { readable: false, signal: AbortSignal.timeout(graceMs) });
  } catch {
    response.destroy();
  }
};
