// partysocket: a WebSocket that reconnects.
import ReconnectingWebSocket from 'partysocket/ws';
import { PlainWebSocket } from './plain-ws.mjs';

export const open = ({ origin, path, take }) => {
  const socket = new ReconnectingWebSocket(origin + path, [], { WebSocket: PlainWebSocket });
  socket.addEventListener('message', ({ data }) => take(data.length));
};
