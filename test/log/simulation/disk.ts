import { constants } from 'node:fs';
import type { Disk } from '../../../src/log/segments.js';
import type { Chance } from '../../simulation/chance.js';
import type { Time } from '../../simulation/world.js';

interface Inode {
  readonly ino: number;
  data: Buffer;
  /** The bytes that are certainly on the disk. */
  synced: Buffer;
  links: number;
  lockedBy: number | undefined;
}

/** A simulated process: once killed, its calls throw and its callbacks are dropped. */
export interface Process {
  isAlive: boolean;
  readonly folder: string;
  readonly fds: Set<number>;
}

const newInode = (ino: number): Inode => ({
  ...{ ino, data: Buffer.alloc(0), synced: Buffer.alloc(0), links: 1, lockedBy: undefined },
});

const statOf = ({ data, links, ino }: Inode) => ({
  ...{ size: data.length, nlink: links, ino, dev: 1, isFile: () => true },
});

type Done = (error: NodeJS.ErrnoException | null, value?: unknown) => void;

const failure = (code: string) => Object.assign(new Error(code), { code });

const slowestMs = { read: [300], write: [300, 300, 1_500], sync: [300] };
/** The share of disk errors that hit this kind of call. Low for `fsync`, whose failure ends a writer too early. */
const errorShares = { read: 0, write: 1, sync: 0.1 };

/** Simulates a disk and its machine: processes get killed, power fails, space runs out. */
export class SimulatedDisk {
  /** Free space, in bytes. */
  free = Infinity;
  /** The share of calls that fail with EIO. */
  errors = 0;
  #names = new Map<string, Inode>();
  /** The file names added since the last `fsync` of the folder. */
  #unsynced = new Set<string>();
  readonly #open = new Map<number, { readonly inode: Inode; readonly path: string; readonly process: Process }>();
  #nextFd = 3;
  #inodes = 0;
  readonly #chance: Chance;
  readonly #time: Time;
  readonly #pending = new Set<{ readonly process: Process; readonly tear: () => void }>();

  constructor(chance: Chance, time: Time) {
    this.#chance = chance;
    this.#time = time;
  }

  names(): readonly string[] {
    return [...this.#names.keys()].sort();
  }

  /** Returns whether a process holds a lock. */
  hasLock(process: Process): boolean {
    return [...process.fds].some((fd) => this.#open.get(fd)?.inode.lockedBy === fd);
  }

  text(name: string): string {
    return this.#names.get(name)?.data.toString('latin1') ?? '';
  }

  /** Somebody removes a file, or cuts it. */
  lose(name: string, isCut: boolean): void {
    if (!isCut) return this.#unlink(name);
    const inode = this.#names.get(name)!;
    inode.data = inode.data.subarray(0, this.#chance.whole(0, inode.data.length));
    if (inode.synced.length > inode.data.length) inode.synced = inode.data;
  }

  /** Ends a process. Only part of a write in flight reaches the disk. */
  kill(process: Process): void {
    process.isAlive = false;
    for (const write of this.#pending)
      if (write.process === process) {
        write.tear();
        this.#pending.delete(write);
      }
    for (const fd of process.fds) this.#close(fd);
  }

  /** Fails the power: bytes that aren't synced may vanish or become zero, and so may the names of new files. */
  failPower(): void {
    for (const inode of new Set(this.#names.values())) {
      const { data, synced } = inode;
      if (data.equals(synced)) continue;
      const isInPlace = data.length === synced.length || synced.length > data.length;
      if (isInPlace) inode.data = this.#chance.isTrue(0.5) ? data : synced;
      else {
        const kept = this.#chance.whole(synced.length, data.length + 1);
        const zeros = this.#chance.isTrue(0.3) ? this.#chance.whole(0, data.length - kept + 1) : 0;
        inode.data = Buffer.concat([data.subarray(0, kept), Buffer.alloc(zeros)]);
      }
      inode.synced = inode.data;
    }
    for (const name of this.#unsynced) if (this.#chance.isTrue(0.4)) this.#names.delete(name);
    this.#unsynced.clear();
    for (const inode of this.#names.values()) inode.lockedBy = undefined;
  }

  lock(process: Process, fd: number): boolean {
    const { inode } = this.#of(process, fd);
    if (inode.lockedBy !== undefined) return false;
    inode.lockedBy = fd;
    return true;
  }

  for(process: Process): Disk {
    const check = () => {
      if (!process.isAlive) throw failure('EKILLED');
    };
    const name = (path: string) => path.slice(process.folder.length + 1);
    const of = (fd: number) => {
      check();
      return this.#of(process, fd);
    };
    const found = (path: string): Inode => {
      check();
      const inode = this.#names.get(name(path));
      if (inode === undefined) throw failure('ENOENT');
      return inode;
    };
    const failing = (share = 1) => {
      if (this.errors > 0 && this.#chance.isTrue(this.errors * share)) throw failure('EIO');
    };
    const inBackground = (kind: keyof typeof slowestMs, call: () => unknown, done: Done, tear = () => {}) => {
      check();
      const pending = { process, tear };
      this.#pending.add(pending);
      const { between, isTrue, oneOf } = this.#chance;
      this.#time.after(between(0, isTrue(0.1) ? oneOf(slowestMs[kind]) : 3), () => {
        if (!this.#pending.delete(pending) || !process.isAlive) return;
        let value: unknown;
        try {
          failing(errorShares[kind]);
          value = call();
        } catch (error) {
          done(error as NodeJS.ErrnoException);
          return;
        }
        done(null, value);
      });
    };
    /** The names of the folder that is open, which have not reached the disk. */
    const namesOf = (fd: number): readonly string[] => {
      const isCursors = of(fd).path === 'cursors';
      return [...this.#unsynced].filter((each) => each.startsWith('cursors/') === isCursors);
    };
    const truncate = (inode: Inode, length: number) => {
      this.free += inode.data.length - length;
      inode.data = Buffer.from(inode.data.subarray(0, length));
      if (inode.synced.length > length) inode.synced = inode.data;
    };
    const copy = ({ data }: Inode, buffer: Buffer, offset: number, length: number, position: number) =>
      position >= data.length ? 0 : data.copy(buffer, offset, position, position + length);
    const disk = {
      openSync: (path: string, how: string | number) => {
        check();
        const flags = typeof how === 'string' ? how : how & constants.O_CREAT ? 'a+' : 'r';
        const file = name(path);
        let inode = path === process.folder || file === 'cursors' ? newInode(0) : this.#names.get(file);
        if (inode === undefined && (flags === 'r' || flags === 'r+')) throw failure('ENOENT');
        if (inode !== undefined && flags.startsWith('wx')) throw failure('EEXIST');
        if (inode === undefined) {
          if (this.free <= 0) throw failure('ENOSPC');
          inode = newInode((this.#inodes += 1));
          this.#names.set(file, inode);
          this.#unsynced.add(file);
        } else if (flags === 'w') {
          this.free += inode.data.length;
          inode.data = Buffer.alloc(0);
        }
        const fd = this.#nextFd++;
        this.#open.set(fd, { inode, path: file, process });
        process.fds.add(fd);
        return fd;
      },
      closeSync: (fd: number) => {
        // Code of a killed process may still run, but has no effect.
        if (!process.isAlive) return;
        this.#of(process, fd);
        this.#close(fd);
      },
      close: (fd: number, done: Done) => {
        disk.closeSync(fd);
        done(null);
      },
      statSync: (path: string, { throwIfNoEntry = true } = {}) => {
        check();
        return throwIfNoEntry || this.#names.has(name(path)) ? statOf(found(path)) : undefined;
      },
      fstatSync: (fd: number) => statOf(of(fd).inode),
      readSync: (fd: number, buffer: Buffer, offset: number, length: number, position: number) =>
        copy(of(fd).inode, buffer, offset, length, position),
      read: (fd: number, buffer: Buffer, offset: number, length: number, position: number, done: Done) => {
        const { inode } = this.#of(process, fd);
        // The result of a read may be outdated by the time its callback runs.
        const { between, isTrue } = this.#chance;
        const later: Done = (error, value) => {
          if (!isTrue(0.2)) return done(error, value);
          this.#time.after(between(0, 10), () => process.isAlive && done(error, value));
        };
        inBackground('read', () => copy(inode, buffer, offset, length, position), later);
      },
      writeSync: (fd: number, buffer: Buffer, offset: number, length: number, position: number) => {
        check();
        failing();
        return this.#put(this.#of(process, fd).inode, buffer.subarray(offset, offset + length), position);
      },
      write: (fd: number, buffer: Buffer, offset: number, length: number, position: number, done: Done) => {
        const { inode } = this.#of(process, fd);
        const bytes = () => buffer.subarray(offset, offset + length);
        const tear = () => this.#put(inode, bytes().subarray(0, this.#chance.whole(0, length + 1)), position, false);
        const write = () => {
          // Now and then the disk only takes part of it.
          const part = this.#chance.isTrue(0.1) ? Math.ceil(length * this.#chance.random()) : length;
          if (this.#open.get(fd)?.inode !== inode) throw new Error('A write to a file that was closed meanwhile.');
          return this.#put(inode, bytes().subarray(0, part), position);
        };
        inBackground('write', write, done, tear);
      },
      fdatasyncSync: (fd: number) => {
        const { inode } = of(fd);
        inode.synced = Buffer.from(inode.data);
      },
      fdatasync: (fd: number, done: Done) => {
        const { inode } = this.#of(process, fd);
        const { data } = inode;
        inBackground('sync', () => (inode.synced = Buffer.from(data)), done);
      },
      fsyncSync: (fd: number) => namesOf(fd).forEach((each) => this.#unsynced.delete(each)),
      fsync: (fd: number, done: Done) => {
        const names = namesOf(fd);
        inBackground('sync', () => names.forEach((each) => this.#unsynced.delete(each)), done);
      },
      ftruncateSync: (fd: number, length: number) => truncate(of(fd).inode, length),
      truncateSync: (path: string, length: number) => truncate(found(path), length),
      readdirSync: (path: string) => {
        check();
        const under = path === process.folder ? '' : `${name(path)}/`;
        const names = [...this.#names.keys()].filter((each) => each.startsWith(under));
        return names.map((each) => each.slice(under.length)).filter((each) => !each.includes('/'));
      },
      unlinkSync: (path: string) => {
        check();
        this.#unlink(name(path));
      },
      renameSync: (from: string, to: string) => {
        const inode = found(from);
        this.#names.delete(name(from));
        this.#names.set(name(to), inode);
      },
      linkSync: (from: string, to: string) => {
        check();
        if (this.#names.has(name(to))) throw failure('EEXIST');
        this.#names.set(name(to), this.#names.get(name(from))!);
        this.#unsynced.add(name(to));
      },
      rmSync: (path: string) => {
        check();
        this.#names.delete(name(path));
        this.#unsynced.delete(name(path));
      },
      mkdirSync: check,
    };
    return disk as unknown as Disk;
  }

  #of(process: Process, fd: number) {
    const open = this.#open.get(fd);
    if (open?.process !== process) throw failure('EBADF');
    return open;
  }

  #close(fd: number): void {
    const open = this.#open.get(fd);
    if (open === undefined) return;
    if (open.inode.lockedBy === fd) open.inode.lockedBy = undefined;
    this.#open.delete(fd);
    open.process.fds.delete(fd);
  }

  #unlink(name: string): void {
    const inode = this.#names.get(name);
    if (inode === undefined) throw failure('ENOENT');
    inode.links = 0;
    this.free += inode.data.length;
    this.#names.delete(name);
    this.#unsynced.delete(name);
  }

  #put(inode: Inode, bytes: Uint8Array, position: number, isChecked = true): number {
    const growth = Math.max(0, position + bytes.length - inode.data.length);
    const room = Math.max(0, Math.min(growth, this.free));
    const length = bytes.length - (growth - room);
    if (length <= 0 && bytes.length > 0) {
      if (isChecked) throw failure('ENOSPC');
      return 0;
    }
    const data = Buffer.alloc(Math.max(inode.data.length, position + length));
    inode.data.copy(data);
    data.set(bytes.subarray(0, length), position);
    inode.data = data;
    this.free -= room;
    return length;
  }
}
