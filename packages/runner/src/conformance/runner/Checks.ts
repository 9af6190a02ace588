/** All promises of a seat runner, in the order of their ids. */
import type { RunnerCheck } from "./RunnerCheck.ts"
import { cancelChecks } from "./checks/Cancels.ts"
import { endings } from "./checks/Endings.ts"
import { input } from "./checks/Input.ts"
import { launchRecords } from "./checks/LaunchRecords.ts"
import { livenessChecks } from "./checks/Liveness.ts"
import { permissionLife } from "./checks/PermissionLife.ts"
import { permissions } from "./checks/Permissions.ts"
import { posts } from "./checks/Posts.ts"
import { presets } from "./checks/Presets.ts"
import { resumes } from "./checks/Resumes.ts"
import { robustness } from "./checks/Robustness.ts"
import { terminal } from "./checks/Terminal.ts"

export const runnerChecks: ReadonlyArray<RunnerCheck> = [
  ...presets,
  ...terminal,
  ...launchRecords,
  ...posts,
  ...livenessChecks,
  ...input,
  ...cancelChecks,
  ...permissions,
  ...permissionLife,
  ...resumes,
  ...endings,
  ...robustness
].toSorted((a, b) => a.id.localeCompare(b.id))
