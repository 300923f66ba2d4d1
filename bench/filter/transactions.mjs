// Pending transactions as JSON of an exact size. One field is compared, and the last `input` fills the remaining bytes.
import { payload } from '../support/payloads.mjs';

/** Where the field `to` is: its place among the other fields, and with three logs that have fields of this name. */
export const placements = ['in front', 'at the end', 'among logs'];

const withField = (text, to, log, place) => {
  if (place === 'at the end') return text.replace(/\}$/, `,"to":"${to}"}`);
  const logs = place === 'among logs' ? `"logs":[${[1, 2, 3].map((n) => `{"to":"${log}${n}"}`).join(',')}],` : '';
  return text.replace('"nonce"', `"to":"${to}",${logs}"nonce"`);
};

/** Returns transactions of about this size: their sender and their recipient differ. */
export const transactions = (bytes, count, place) =>
  Array.from({ length: count }, (_, n) => {
    // Small payloads of the other benchmarks are single transactions.
    const base = String(payload(Math.min(bytes, 1_024) - 50 - (place === 'among logs' ? 160 : 0), n + 1));
    const other = JSON.parse(String(payload(200, n + 50_001)));
    const text = withField(base, other.from, other.from.slice(0, -1), place);
    return Buffer.from(text.replace('"input":"0x', `"input":"0x${'5e'.repeat(Math.max(0, bytes - text.length) / 2)}`));
  });
