// centrifuge: a protocol of its own (JSON, one publication a frame), parsed by it; the payload inside is of the same size.
import { Centrifuge } from 'centrifuge';
import { PlainWebSocket } from './plain-ws.mjs';

export const open = ({ origin, path, take, size }) => {
  const client = new Centrifuge(origin + path, { websocket: PlainWebSocket });
  client.on('publication', ({ data }) => data && take(size));
  client.on('error', (error) => console.error(error));
  client.connect();
};
