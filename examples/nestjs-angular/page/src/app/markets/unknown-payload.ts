import { ChangeDetectionStrategy, Component } from '@angular/core';

/** Explains that the payload is unknown, and what to write to decode it. */
@Component({
  selector: 'app-unknown-payload',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    <h3>This view does not know the payload of this feed.</h3>
    <p>
      The contract of the service does not define the payload, so the server forwards frames without reading them. To
      see candles here, add a codec for your frames. The view <a href="#feed">Feed</a> shows their contents.
    </p>
    <ol>
      <li>
        Write the codec of your payload in <code>server/src/markets/trade-batch.ts</code>. Its output is a list of
        trades, each with a market, a price and a size:
        <pre tabindex="0" aria-label="A codec, as an example"><code>{{ codec }}</code></pre>
      </li>
      <li>
        Use it in <code>server/src/markets/payload.ts</code>:
        <pre tabindex="0" aria-label="The use of the codec"><code>{{ payload }}</code></pre>
      </li>
      <li>Restart the server.</li>
    </ol>
  `,
  styleUrl: './unknown-payload.css',
})
export class UnknownPayload {
  protected readonly codec = `import * as t from 'io-ts';

export const YourPayload = t.type({
  trades: t.array(t.type({ symbol: t.string, price: t.number, size: t.number })),
});`;
  protected readonly payload = `export const payloadOf = (): Payload => ({ codec: YourPayload, kind: 'decoded' });`;
}
