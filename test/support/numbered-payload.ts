import type { Numbered } from './ten-rules/seen.js';

/** Creates a payload that names its subscription, and in which every changed byte is visible. @param bytes - the minimum length */
export const numberedPayload = ({ subscription, socket, seq }: Numbered, bytes = 0): string => {
  const head = `${subscription}:${socket}:${seq}:${bytes}:`;
  return head.padEnd(bytes, String((seq * 7919 + socket * 31 + subscription) % 1_000_003));
};

/** Reads a numbered payload. Returns `undefined` if any byte differs. */
export const readNumbered = (payload: string): Numbered | undefined => {
  const [subscription, socket, seq, bytes] = payload.split(':', 4).map(Number);
  const numbered = { subscription: subscription ?? NaN, socket: socket ?? NaN, seq: seq ?? NaN };
  return payload === numberedPayload(numbered, bytes) ? numbered : undefined;
};
