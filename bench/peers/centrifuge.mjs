// centrifuge: a separate protocol (JSON, one publication for each frame), which it parses. The payload has the same size.
import { Centrifuge } from 'centrifuge';
import { PlainWebSocket } from './plain-ws.mjs';

export const open = ({ origin, path, take, size }) => {
  const client = new Centrifuge(origin + path, { websocket: PlainWebSocket });
  client.on('publication', ({ data }) => data && take(size));
  client.on('error', (error) => console.error(error));
  client.connect();
};
