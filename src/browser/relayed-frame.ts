import type { Feed } from '../protocol/feed.js';
import { Frame } from '../protocol/frame.js';

/** A frame that came over a relay: its payload is a `Uint8Array` with bytes of its own. */
export class RelayedFrame extends Frame<Uint8Array> {
  override text(): string {
    return decoder.decode(this.data);
  }
}

/** What a relay says of a frame. */
export interface FrameFields {
  readonly feed: Feed;
  readonly connection: number;
  readonly receivedAt: number;
  readonly isBinary: boolean;
  readonly encoding: 'utf8' | 'base64';
  readonly data: string;
}

/** Makes the frame of its fields. */
export const relayedFrame = ({ feed, connection, receivedAt, isBinary, encoding, data }: FrameFields): RelayedFrame =>
  new RelayedFrame(feed, encoding === 'utf8' ? encoder.encode(data) : decoded(data), isBinary, receivedAt, connection);

// A byte order mark is part of the payload, as it is on a server.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

const decoded = (base64: string): Uint8Array => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
