// The WebSocketSubject of RxJS, with a deserializer that doesn't parse JSON.
import { webSocket } from 'rxjs/webSocket';
import { PlainWebSocket } from './plain-ws.mjs';

export const open = ({ origin, path, take }) => {
  const feed$ = webSocket({ url: origin + path, WebSocketCtor: PlainWebSocket, deserializer: ({ data }) => data });
  feed$.subscribe((text) => take(text.length));
};
