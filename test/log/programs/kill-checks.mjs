// What readers and consumers of a log must have, whatever is killed.
import { crc32 } from 'node:zlib';

/** Checks that a reader receives each record once and in order. @param report - receives what's wrong */
export const checkReader = (report) => {
  /** The hash of the content of each offset, and what a consumer says that it has worked on. */
  const [hashes, names] = [[], []];
  let [id, hasGap, frames, gaps] = [undefined, false, 0, 0];
  const receive = (record) => {
    const isFrame = record.type === 'frame';
    if (record.type === 'gap') {
      hasGap = true;
      gaps += 1;
    }
    const { offset } = record;
    if (offset === undefined) return;
    if (offset !== hashes.length) report(`${offset} after ${hashes.length - 1}`);
    hashes[offset] = crc32(isFrame ? record.text() : JSON.stringify({ ...record, position: undefined }));
    names[offset] = isFrame ? record.json().id : record.type;
    if (!isFrame) return;
    frames += 1;
    const [writer, n] = names[offset].split(':').map(Number);
    const isNext = id?.writer === writer ? n === id.n + 1 : n === 0 && (id === undefined || hasGap);
    if (!isNext) report(`frame ${writer}:${n} after ${id?.writer}:${id?.n}`);
    id = { writer, n };
    hasGap = false;
  };
  return { hashes, names, receive, id: () => id, sums: () => ({ frames, gaps }) };
};

/**
 * Reads what the processes of a consumer have noted, one after the other, and checks it: work is handed over once until
 * it's committed, and never again after that, and nothing is committed before it's worked on.
 */
export const checkConsumer = (notes, report) => {
  const worked = [];
  let [committed, since, next, repeated] = [0, 0, 0, 0];
  let inThisRun = new Set();
  const receive = (entry) => {
    const [offset, name] = entry.split(/=(.*)/);
    const at = Number(offset);
    if (entry === 'hole') return report('a consumer has received a gap in place of records');
    if (inThisRun.has(at)) report(`a consumer has worked on ${entry} twice`);
    if (at < since) report(`a consumer has worked on ${entry} again, after its commit of ${since}`);
    if (worked[at] !== undefined) repeated += 1;
    if ((worked[at] ?? name) !== name) report(`a consumer has ${entry} in place of ${worked[at]}`);
    inThisRun.add(at);
    worked[at] = name;
  };
  for (const line of notes.split('\n')) {
    const [kind, ...entries] = line.split(' ');
    if (entries.pop() !== '.') continue;
    if (kind === 'run') [since, inThisRun] = [committed, new Set()];
    else if (kind === 'work') entries.forEach(receive);
    else {
      const commit = Number(entries[0]);
      if (commit < committed) report(`a consumer has committed ${commit} after ${committed}`);
      committed = commit;
      while (next < commit && worked[next] !== undefined) next += 1;
      if (next < commit) report(`a consumer has committed ${commit}, but it hasn't worked on ${next}`);
    }
  }
  return { worked, committed, repeated };
};
