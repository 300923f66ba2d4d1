import { WebSocket } from 'ws';
import { CloseCode, CloseReason } from '../../protocol/close-code.js';

/** Close code of RFC 6455 for a message that is larger than `maxPayload`. */
const messageTooBig = 1009;

/**
 * A server's WebSocket that calls every message by its name: one that is too large to be read is still a message, so ws's own
 * 1009 becomes the contract's 1008 `server push only` (section 3.2).
 */
export class PushOnlySocket extends WebSocket {
  override close(code?: number, reason?: string | Buffer): void {
    if (code === messageTooBig) super.close(CloseCode.serverPushOnly, CloseReason.serverPushOnly);
    else super.close(code, reason);
  }
}
