/**
 * The store as a service, for programs that are composed of Effect layers.
 *
 * @since 0.1.0
 */
import { Context } from "effect"
import type { RuntimeStore } from "./RuntimeStore.ts"

/**
 * The {@link RuntimeStore} a runtime works on. `layer` of `@tackroom/sdk/stores/memory` and `/stores/sqlite` provide it;
 * the layer closes the store with its scope.
 *
 * @since 0.1.0
 */
export class Store extends Context.Service<Store, RuntimeStore>()("@tackroom/sdk/store/Store") {}
