import type { Numbered } from './ten-rules/seen.js';

/** A payload that says whose it is and shows every changed byte. @param bytes - at least this long */
export const numberedPayload = ({ subscription, socket, seq }: Numbered, bytes = 0): string => {
  const head = `${subscription}:${socket}:${seq}:${bytes}:`;
  return head.padEnd(bytes, String((seq * 7919 + socket * 31 + subscription) % 1_000_003));
};

/** Reads such a payload; `undefined` when it is not, to the last byte, what was written. */
export const readNumbered = (payload: string): Numbered | undefined => {
  const [subscription, socket, seq, bytes] = payload.split(':', 4).map(Number);
  const numbered = { subscription: subscription ?? NaN, socket: socket ?? NaN, seq: seq ?? NaN };
  return payload === numberedPayload(numbered, bytes) ? numbered : undefined;
};
