// RxJS' own WebSocketSubject, which parses JSON unless it is told not to.
import { webSocket } from 'rxjs/webSocket';
import { PlainWebSocket } from './plain-ws.mjs';

export const open = ({ origin, path, take }) => {
  const feed$ = webSocket({ url: origin + path, WebSocketCtor: PlainWebSocket, deserializer: ({ data }) => data });
  feed$.subscribe((text) => take(text.length));
};
