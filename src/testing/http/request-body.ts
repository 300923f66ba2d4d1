import type { IncomingMessage } from 'node:http';

/**
 * Reads the body of a request, up to a bound; its time is bounded by the server (`limits.requestTimeoutMs`).
 *
 * @returns the bytes; `too-large` beyond the bound (the rest is read and dropped, so that the answer can be read);
 *   `aborted` when the client went away
 */
export const readBody = (request: IncomingMessage, maxBytes: number): Promise<Buffer | 'too-large' | 'aborted'> =>
  new Promise((resolve) => {
    let chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else {
        chunks = [];
        resolve('too-large');
      }
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', () => resolve('aborted'));
    request.on('close', () => resolve('aborted'));
  });
