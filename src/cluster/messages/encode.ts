import type { LifecycleEvent } from '../../protocol/event.js';
import { ReceivedFrame } from '../../frames/received-frame.js';
import type { Frame } from '../../protocol/frame.js';
import { writeEventLine } from '../../protocol/event-line.js';
import { payloadOf } from '../../protocol/lazy-frame.js';
import type { MessageHead, PlainMessage } from './feed-message.js';
import { flag, headBytes, kinds, partHeadBytes, phases, version } from './layout.js';

/** Returns the bytes of a message without frames. */
export const encode = (message: PlainMessage): Buffer => {
  switch (message.kind) {
    case 'event':
      return encodeText(message, writeEventLine(publicEvent(message.event)));
    case 'beat':
    case 'end':
      return withHead(message, message.kind, 0, 0);
  }
};

/** Returns how many bytes the head of a message has. */
export const headBytesOf = ({ owner }: MessageHead): number => headBytes + Buffer.byteLength(owner);

/**
 * Returns the messages for a frame that is too large for one message.
 *
 * @param maxBytes - the size limit of a message
 */
export const encodeParts = (head: MessageHead, frame: Frame, maxBytes: number): readonly Buffer[] => {
  const data = payloadOf(frame);
  const partBytes = Math.max(1, maxBytes - headBytesOf(head) - partHeadBytes);
  return Array.from({ length: Math.ceil(data.byteLength / partBytes) }, (_, n) => {
    const part = data.subarray(n * partBytes, (n + 1) * partBytes);
    const bytes = withHead(head, 'part', 1, partHeadBytes + part.byteLength);
    const at = headBytesOf(head);
    bytes.writeUInt8(flagsOf(frame), at);
    bytes.writeInt32BE(offsetOf(head, frame), at + 1);
    bytes.writeUInt32BE(data.byteLength, at + 5);
    bytes.writeUInt32BE(n * partBytes, at + 9);
    bytes.set(part, at + partHeadBytes);
    return bytes;
  });
};

// Only the fixed texts of a failure leave the process.
const publicEvent = (event: LifecycleEvent): LifecycleEvent =>
  'failure' in event ? { ...event, failure: event.failure.toPublic() } : event;

const encodeText = (head: MessageHead, text: string): Buffer => {
  const bytes = withHead(head, 'event', 1, Buffer.byteLength(text));
  bytes.write(text, headBytesOf(head));
  return bytes;
};

/** Returns the flags of a frame. */
export const flagsOf = (frame: Frame): number => {
  if (frame.isBinary) return flag.binary;
  return frame instanceof ReceivedFrame && frame.isAscii ? flag.ascii : 0;
};

/** Returns when a frame was received, in ms after the time of its message. */
// The range of 32 bits is 24 days. A clock that was set by more than that must not make the message unreadable.
export const offsetOf = ({ at }: MessageHead, { receivedAt }: Frame): number =>
  Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, Math.round(receivedAt - at)));

const withHead = (head: MessageHead, kind: keyof typeof kinds, count: number, bodyBytes: number): Buffer => {
  const bytes = Buffer.allocUnsafe(headBytesOf(head) + bodyBytes);
  writeHead(bytes, head, kind, count);
  return bytes;
};

/** Writes the head at the beginning of a message. */
export const writeHead = (bytes: Buffer, head: MessageHead, kind: keyof typeof kinds, count: number): void => {
  const { epoch, gen, owner, phase, revision, sequence, frames, at } = head;
  bytes.writeUInt8(version, 0);
  bytes.writeUInt8(kinds[kind], 1);
  bytes.writeUInt8(phases.indexOf(phase), 2);
  bytes.writeUInt8(Buffer.byteLength(owner), 3);
  bytes.writeUInt32BE(count, 4);
  let offset = 8;
  for (const number of [epoch, gen, revision, sequence, frames, at]) offset = bytes.writeDoubleBE(number, offset);
  bytes.write(owner, offset);
};
