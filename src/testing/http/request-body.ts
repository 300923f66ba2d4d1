import type { IncomingMessage } from 'node:http';

/**
 * Reads the body of a request, up to `maxBytes`. The server limits the time by `limits.requestTimeoutMs`.
 *
 * @returns the bytes; `too-large` for a larger body; `aborted` if the client disconnected. The rest of a larger body is read and dropped, so that
 *   the client can read the answer.
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
