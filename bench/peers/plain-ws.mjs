// The `ws` that others are built on: compression off, Buffers for binary frames, as they would set it themselves.
import { WebSocket } from 'ws';

/** For libraries that take a constructor. */
export class PlainWebSocket extends WebSocket {
  constructor(address, protocols) {
    super(address, protocols, { perMessageDeflate: false });
    this.binaryType = 'nodebuffer';
  }
}
