// Pending transactions as JSON of an exact size. The field `to` is compared, and the last `input` fills the remaining bytes.
import { payload } from '../support/payloads.mjs';

/** Returns transactions of about this size: their sender and their recipient differ. */
export const transactions = (bytes, count) =>
  Array.from({ length: count }, (_, n) => {
    // Small payloads of the other benchmarks are single transactions.
    const base = String(payload(Math.min(bytes, 1_024) - 50, n + 1));
    const { from: to } = JSON.parse(String(payload(200, n + 50_001)));
    const text = base.replace('"nonce"', `"to":"${to}","nonce"`);
    return Buffer.from(text.replace('"input":"0x', `"input":"0x${'5e'.repeat(Math.max(0, bytes - text.length) / 2)}`));
  });
