// One client that is disconnected a few times: the time from the close frame to the next frame, and to each step between them.
//
// The close frame counts as read half a round trip after it was written.
import { nowUs } from '../support/stamp.mjs';
import { median } from '../lib/stats.mjs';
import { limit, limitStandby } from './limit.mjs';
import { naive } from './naive.mjs';
import { ours } from './ours.mjs';

const clients = {
  limit,
  limitStandby,
  naive: naive('own'),
  pooled: naive('pooled'),
  ours: ours({}),
  standby: ours({ standby: true }),
};

const [name, baseUrl, roundTrip, reconnects] = process.argv.slice(2);
const roundTripUs = Number(roundTrip) * 1000;
const gaps = [];
let isFirst = false;

const onFrame = (data) => {
  if (!isFirst) return;
  isFirst = false;
  const readUs = nowUs();
  const { closedUs, requestUs, begunUs, upgradeUs } = JSON.parse(data.toString());
  if (closedUs === undefined) return;
  // In round trips after the close frame was read. The service receives a request half a round trip after it was sent.
  const after = (us) => (us - closedUs) / roundTripUs - 0.5;
  gaps.push({
    ticketRequest: after(requestUs) - 0.5,
    connect: after(begunUs),
    upgrade: after(upgradeUs) - 0.5,
    gap: after(readUs),
  });
  if (gaps.length < Number(reconnects)) return;
  const result = Object.fromEntries(Object.keys(gaps[0]).map((key) => [key, median(gaps.map((each) => each[key]))]));
  process.stdout.write(`${JSON.stringify({ ...result, first: gaps[0].gap })}\n`, () => process.exit(0));
};

clients[name]({ baseUrl, onFrame, onOpen: () => (isFirst = true) });
