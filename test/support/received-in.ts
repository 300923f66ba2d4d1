import { MemoryUse, Payload, PayloadKind, ReceivedFrame } from '../../src/frames/received-frame.js';

const defaults = {
  kind: PayloadKind.Ascii as PayloadKind,
  use: MemoryUse.Reused as MemoryUse,
  receivedAt: 1,
  connection: 1,
};

/** Creates a frame whose payload lies in memory from `start` to `end`, by default in a read buffer. */
export const receivedIn = (memory: Buffer, start: number, end: number, options: Partial<typeof defaults> = {}) => {
  const { kind, use, receivedAt, connection } = { ...defaults, ...options };
  return new ReceivedFrame('market', new Payload(memory, start, end, kind, use), receivedAt, connection);
};
