import type { Readable } from 'node:stream';

/**
 * Gives the lines of a stream, without empty ones. A line ends with a newline and nothing else: JSON may hold U+2028, at which
 * `node:readline` would cut.
 */
export async function* linesOf(stream: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const text = rest + decoder.decode(chunk, { stream: true });
    const end = text.lastIndexOf('\n') + 1;
    rest = text.slice(end);
    yield* payloads(text.slice(0, end));
  }
  yield* payloads(rest + decoder.decode());
}

const payloads = (lines: string): readonly string[] =>
  lines
    .split('\n')
    .map((line) => line.replace(/\r$/, ''))
    .filter((line) => line !== '');
