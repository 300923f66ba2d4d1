import { headerLine } from '../../src/log/lines.js';
import type { Tip } from '../../src/log/segments.js';
import type { LogStream, Message, MessageHead } from '../../src/nats/log-stream.js';

let streams = 0;

/** The part of a `LogStream` that a reader and a writer use, in memory. A test replaces the functions that should fail. */
export const fakeStream = () => {
  let messages: readonly Message[] = [];
  const store = (header: MessageHead | undefined, text = '', seq = (messages.at(-1)?.seq ?? 0) + 1): number => {
    messages = [
      ...messages,
      { seq, header, bytes: Buffer.from((header === undefined ? 'other\n' : headerLine(header)) + text) },
    ];
    return seq;
  };
  const stream = {
    path: `fake-${(streams += 1)}`,
    server: 'server',
    tips: [] as Tip[],
    store,
    /** What the server has lost, or retention has removed. */
    remove: (isRemoved: (seq: number) => boolean) => {
      messages = messages.filter(({ seq }) => !isRemoved(seq));
    },
    stored: () => messages,
    persist: <T>(request: () => Promise<T>): Promise<T> => request(),
    create: () => Promise.resolve(),
    last: (): Promise<Partial<Message>> => Promise.resolve(messages.at(-1) ?? { seq: 0 }),
    from: (from: number): Promise<Message | undefined> => Promise.resolve(messages.find(({ seq }) => seq >= from)),
    append: (header: MessageHead, body: Buffer, after: number): Promise<number> =>
      after === (messages.at(-1)?.seq ?? 0)
        ? Promise.resolve(store(header, body.toString()))
        : Promise.reject(new Error('wrong last sequence')),
    roomFor: () => 1_000_000,
    take: (): Promise<(() => void) | undefined> => Promise.resolve(() => undefined),
    tell: (tip: Tip): void => void stream.tips.push(tip),
    listen: (): (() => void) => () => undefined,
  };
  return stream;
};

export type FakeStream = ReturnType<typeof fakeStream>;

export const asStream = (stream: FakeStream): LogStream => stream as unknown as LogStream;
