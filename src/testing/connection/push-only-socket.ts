import { WebSocket } from 'ws';
import { CloseCode, CloseReason } from '../../protocol/close-code.js';

/** The close code of RFC 6455 for a message that is larger than `maxPayload`. */
const messageTooBig = 1009;

/**
 * A server's WebSocket. It closes with 1008 `server push only` (contract, section 3.2), even if a client's message is too large. `ws` would close
 * with 1009.
 */
export class PushOnlySocket extends WebSocket {
  override close(code?: number, reason?: string | Buffer): void {
    if (code === messageTooBig) super.close(CloseCode.serverPushOnly, CloseReason.serverPushOnly);
    else super.close(code, reason);
  }
}
