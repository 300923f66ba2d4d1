/** One payload of a feed: a string becomes a text frame, bytes become a binary frame. */
export type Payload = string | Uint8Array;

/** Tells whether a value can be pushed. */
export const isPayload = (value: unknown): value is Payload => typeof value === 'string' || value instanceof Uint8Array;
