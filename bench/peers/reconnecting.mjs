// reconnecting-websocket: the ancestor of partysocket.
import { createRequire } from 'node:module';
import { PlainWebSocket } from './plain-ws.mjs';

const ReconnectingWebSocket = createRequire(import.meta.url)('reconnecting-websocket');

export const open = ({ origin, path, take }) => {
  const socket = new ReconnectingWebSocket(origin + path, [], { WebSocket: PlainWebSocket });
  socket.addEventListener('message', ({ data }) => take(data.length));
};
