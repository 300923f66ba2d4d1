import type { Feed } from '../../index.js';
import type { TopSource } from '../top/source.js';

/** The options that name a service and a key. */
export interface ServiceArguments {
  readonly baseUrl?: string;
  readonly keyFile?: string;
  readonly ca?: string;
}

/** The options of a connection to a service. */
export interface ConnectionArguments extends ServiceArguments {
  readonly retries?: number;
  /** In ms. */
  readonly duration?: number;
}

/** The options of a replica of a cluster. */
export interface ClusterArguments {
  /** The address of the engine. */
  readonly cluster?: string;
  readonly account?: string;
  readonly replica?: string;
}

/** The options of the output to stderr. */
export interface StatusArguments {
  /** `false` for `--no-status`. */
  readonly status: boolean;
  readonly quiet?: true;
}

/** The command `demo`. */
export interface DemoCommand {
  readonly command: 'demo';
  readonly feed: Feed;
  readonly options: ConnectionArguments & {
    readonly rate?: number;
    /** In ms. */
    readonly outageEvery?: number;
    readonly replicas?: number;
  };
}

/** The command `listen`. */
export interface ListenCommand {
  readonly command: 'listen';
  readonly feed: Feed;
  readonly options: ConnectionArguments &
    ClusterArguments &
    StatusArguments & { readonly count?: number; readonly json?: true };
}

/** The command `record`. */
export interface RecordCommand {
  readonly command: 'record';
  readonly feed: Feed;
  readonly options: ConnectionArguments &
    StatusArguments & {
      readonly output?: string;
      /** In bytes. */
      readonly maxFileSize?: number;
      readonly count?: number;
    };
}

/** The command `replay`. */
export interface ReplayCommand {
  readonly command: 'replay';
  readonly file: string;
  readonly options: StatusArguments & {
    readonly speed?: number;
    readonly offset?: number;
    readonly count?: number;
    readonly json?: true;
  };
}

/** The command `serve`. */
export interface ServeCommand {
  readonly command: 'serve';
  readonly options: {
    readonly plan?: 'free' | 'developer';
    readonly port?: number;
    readonly rate?: number;
    readonly seed?: number;
    readonly source?: string;
    readonly feed?: Feed;
    readonly replay?: string;
    readonly upstream?: string;
    readonly speed?: number;
    readonly tls?: true;
    readonly cert?: string;
    readonly key?: string;
  };
}

/** The command `cluster`. */
export interface ClusterCommand {
  readonly command: 'cluster';
  readonly action: 'status' | 'hand-over' | 'resume';
  readonly options: Omit<ClusterArguments, 'replica'> & { readonly json?: true };
}

/** The command `doctor`. */
export interface DoctorCommand {
  readonly command: 'doctor';
  readonly feed: Feed;
  readonly options: ServiceArguments & {
    readonly connect?: true;
    /** In ms. */
    readonly frameWithin?: number;
    readonly json?: true;
  };
}

/** The command `top`. */
export interface TopCommand {
  readonly command: 'top';
  readonly source: readonly TopSource[];
  readonly options: ServiceArguments & {
    readonly headerFile?: string;
    /** In ms. */
    readonly every?: number;
    /** In ms. */
    readonly duration?: number;
  };
}

/** A command with its arguments, or a text to print: a help text or the version. */
export type ParsedCommand =
  | DemoCommand
  | ListenCommand
  | RecordCommand
  | ReplayCommand
  | ServeCommand
  | ClusterCommand
  | DoctorCommand
  | TopCommand
  | { readonly command: 'print'; readonly text: string };
