// `ws` with the best options for libraries that use it: no compression, Buffers for binary frames.
import { WebSocket } from 'ws';

/** A constructor for libraries that accept one. */
export class PlainWebSocket extends WebSocket {
  constructor(address, protocols) {
    super(address, protocols, { perMessageDeflate: false });
    this.binaryType = 'nodebuffer';
  }
}
