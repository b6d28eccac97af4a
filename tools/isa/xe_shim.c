/* A render node of Intel's xe kernel driver that does nothing, so that Mesa compiles for a GPU that is not there. Debian's shims have none for Intel.
 *
 * Loaded before everything else, it answers for one device file, in place of the C library and of libdrm. XE_ID is the device's PCI id, in hexadecimal. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <drm/xe_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xf86drm.h>

#define NODE "/dev/dri/renderD128"
#define MANY 1024
#define GIB (1ull << 30)

/* The file descriptors that stand for the node. */
static char is_ours[MANY];

/* What numbers are given out: for buffers, queues, fences. */
static uint32_t last_handle;

static int device_id(void) {
    const char *id = getenv("XE_ID");
    return id ? (int)strtol(id, NULL, 16) : 0xe20b;
}

/* Battlemage and Alchemist have memory of their own; the others share the processor's. */
static int family(void) { return device_id() & 0xff00; }
static int is_discrete(void) { return family() == 0xe200 || family() == 0x5600; }
static int is_xe2(void) { return family() == 0xe200 || family() == 0x6400; }

static int cores(void) {
    switch (family()) {
    case 0x5600: return 32;
    case 0xe200: return 20;
    default: return 8;
    }
}

/* The C library's. */

static int is_node(const char *path) { return path && !strcmp(path, NODE); }
static int is_node_file(int file) { return file >= 0 && file < MANY && is_ours[file]; }

static int open_node(void) {
    int file = (int)syscall(SYS_memfd_create, "xe", 0);
    if (file >= 0 && file < MANY)
        is_ours[file] = 1;
    return file;
}

static int open_any(const char *path, int flags, int mode) {
    return is_node(path) ? open_node() : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    return open_any(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    return open_any(path, flags, mode);
}

/* On 64-bit Linux `stat` and `stat64` are one structure. */
static int describe_node(void *status) {
    struct stat *node = status;
    memset(node, 0, sizeof *node);
    node->st_mode = S_IFCHR | 0666;
    node->st_rdev = makedev(226, 128);
    return 0;
}

int stat(const char *restrict path, struct stat *restrict status) {
    if (is_node(path))
        return describe_node(status);
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int stat64(const char *restrict path, struct stat64 *restrict status) {
    if (is_node(path))
        return describe_node(status);
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int fstat64(int file, struct stat64 *status) {
    if (is_node_file(file))
        return describe_node(status);
    return (int)syscall(SYS_newfstatat, file, "", status, AT_EMPTY_PATH);
}

static void *map(void *at, size_t length, int protection, int flags, int file, off_t offset) {
    if (is_node_file(file)) {
        flags = MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE | (flags & MAP_FIXED);
        file = -1;
        offset = 0;
    }
    return (void *)syscall(SYS_mmap, at, length, protection, flags, file, offset);
}

void *mmap(void *at, size_t length, int protection, int flags, int file, off_t offset) {
    return map(at, length, protection, flags, file, offset);
}

void *mmap64(void *at, size_t length, int protection, int flags, int file, off64_t offset) {
    return map(at, length, protection, flags, file, offset);
}

/* What the kernel answers. */

/* The first call asks for the size, the second brings the room. */
static int answer(struct drm_xe_device_query *query, const void *data, uint32_t size) {
    if (query->size)
        memcpy((void *)(uintptr_t)query->data, data, query->size < size ? query->size : size);
    else
        query->size = size;
    return 0;
}

static int answer_engines(struct drm_xe_device_query *query) {
    struct {
        struct drm_xe_query_engines head;
        struct drm_xe_engine engines[3];
    } all = {.head.num_engines = 3};
    all.engines[0].instance.engine_class = DRM_XE_ENGINE_CLASS_RENDER;
    all.engines[1].instance.engine_class = DRM_XE_ENGINE_CLASS_COPY;
    all.engines[2].instance.engine_class = DRM_XE_ENGINE_CLASS_COMPUTE;
    return answer(query, &all, sizeof all);
}

static int answer_memory(struct drm_xe_device_query *query) {
    struct {
        struct drm_xe_query_mem_regions head;
        struct drm_xe_mem_region regions[2];
    } all = {.head.num_mem_regions = is_discrete() ? 2 : 1};
    all.regions[0] =
        (struct drm_xe_mem_region){.mem_class = DRM_XE_MEM_REGION_CLASS_SYSMEM, .min_page_size = 4096, .total_size = 16 * GIB};
    all.regions[1] = (struct drm_xe_mem_region){.mem_class = DRM_XE_MEM_REGION_CLASS_VRAM,
                                                .instance = 1,
                                                .min_page_size = 65536,
                                                .total_size = 12 * GIB,
                                                .cpu_visible_size = 12 * GIB};
    return answer(query, &all, sizeof all.head + all.head.num_mem_regions * sizeof all.regions[0]);
}

static int answer_configuration(struct drm_xe_device_query *query) {
    struct {
        struct drm_xe_query_config head;
        uint64_t values[5];
    } all = {.head.num_params = 5};
    all.values[DRM_XE_QUERY_CONFIG_REV_AND_DEVICE_ID] = (uint64_t)device_id() | 4 << 16;
    all.values[DRM_XE_QUERY_CONFIG_FLAGS] = is_discrete() ? DRM_XE_QUERY_CONFIG_FLAG_HAS_VRAM : 0;
    all.values[DRM_XE_QUERY_CONFIG_MIN_ALIGNMENT] = 65536;
    all.values[DRM_XE_QUERY_CONFIG_VA_BITS] = 48;
    all.values[DRM_XE_QUERY_CONFIG_MAX_EXEC_QUEUE_PRIORITY] = 2;
    return answer(query, &all, sizeof all);
}

static int answer_tiles(struct drm_xe_device_query *query) {
    struct {
        struct drm_xe_query_gt_list head;
        struct drm_xe_gt tile;
    } all = {.head.num_gt = 1};
    all.tile.type = DRM_XE_QUERY_GT_TYPE_MAIN;
    all.tile.reference_clock = 19200000;
    all.tile.ip_ver_major = 20;
    all.tile.ip_ver_minor = family() == 0xe200 ? 1 : 4;
    all.tile.ip_ver_rev = 4;
    return answer(query, &all, sizeof all);
}

/* Appends a mask of the lowest `bits` bits of 64 to the list at `end`. Returns the new end. */
static uint8_t *append_mask(uint8_t *end, int type, int bits) {
    struct drm_xe_query_topology_mask mask = {.type = (uint16_t)type, .num_bytes = 8};
    uint64_t ones = (1ull << bits) - 1;
    memcpy(end, &mask, sizeof mask);
    memcpy(end + sizeof mask, &ones, sizeof ones);
    return end + sizeof mask + sizeof ones;
}

static int answer_topology(struct drm_xe_device_query *query) {
    uint8_t masks[4 * (sizeof(struct drm_xe_query_topology_mask) + 8)];
    uint8_t *end = append_mask(masks, DRM_XE_TOPO_DSS_GEOMETRY, cores());
    end = append_mask(end, DRM_XE_TOPO_DSS_COMPUTE, cores());
    end = append_mask(end, DRM_XE_TOPO_L3_BANK, 8);
    if (is_xe2())
        end = append_mask(end, DRM_XE_TOPO_SIMD16_EU_PER_DSS, 8);
    else
        end = append_mask(end, DRM_XE_TOPO_EU_PER_DSS, 16);
    return answer(query, masks, (uint32_t)(end - masks));
}

static int answer_query(struct drm_xe_device_query *query) {
    static const uint8_t nothing[64];
    switch (query->query) {
    case DRM_XE_DEVICE_QUERY_ENGINES: return answer_engines(query);
    case DRM_XE_DEVICE_QUERY_MEM_REGIONS: return answer_memory(query);
    case DRM_XE_DEVICE_QUERY_CONFIG: return answer_configuration(query);
    case DRM_XE_DEVICE_QUERY_GT_LIST: return answer_tiles(query);
    case DRM_XE_DEVICE_QUERY_GT_TOPOLOGY: return answer_topology(query);
    case DRM_XE_DEVICE_QUERY_HWCONFIG: query->size = 0; return 0;
    default: return answer(query, nothing, sizeof nothing);
    }
}

static int answer_call(unsigned long request, void *argument) {
    switch (_IOC_NR(request) - DRM_COMMAND_BASE) {
    case DRM_XE_DEVICE_QUERY: return answer_query(argument);
    case DRM_XE_GEM_CREATE: ((struct drm_xe_gem_create *)argument)->handle = ++last_handle; return 0;
    case DRM_XE_GEM_MMAP_OFFSET: {
        struct drm_xe_gem_mmap_offset *place = argument;
        place->offset = (uint64_t)place->handle << 40;
        return 0;
    }
    case DRM_XE_VM_CREATE: ((struct drm_xe_vm_create *)argument)->vm_id = 1; return 0;
    case DRM_XE_EXEC_QUEUE_CREATE: ((struct drm_xe_exec_queue_create *)argument)->exec_queue_id = ++last_handle; return 0;
    case DRM_XE_EXEC_QUEUE_GET_PROPERTY: ((struct drm_xe_exec_queue_get_property *)argument)->value = 0; return 0;
    default: return 0;
    }
}

int ioctl(int file, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return is_node_file(file) ? answer_call(request, argument) : (int)syscall(SYS_ioctl, file, request, argument);
}

/* libdrm's. */

int drmIoctl(int file, unsigned long request, void *argument) {
    (void)file;
    return answer_call(request, argument);
}

static drmDevicePtr make_device(void) {
    static drmPciBusInfo bus = {.bus = 3};
    static drmPciDeviceInfo info = {.vendor_id = 0x8086, .subvendor_id = 0x8086, .subdevice_id = 1};
    static char *nodes[DRM_NODE_MAX] = {"/dev/dri/card0", "", NODE};
    info.device_id = (uint16_t)device_id();
    drmDevicePtr device = calloc(1, sizeof *device);
    if (device) {
        device->nodes = nodes;
        device->available_nodes = 1 << DRM_NODE_RENDER | 1 << DRM_NODE_PRIMARY;
        device->bustype = DRM_BUS_PCI;
        device->businfo.pci = &bus;
        device->deviceinfo.pci = &info;
    }
    return device;
}

int drmGetDevices2(uint32_t flags, drmDevicePtr devices[], int count) {
    (void)flags;
    if (devices && count > 0)
        devices[0] = make_device();
    return 1;
}

int drmGetDevices(drmDevicePtr devices[], int count) { return drmGetDevices2(0, devices, count); }

int drmGetDevice2(int file, uint32_t flags, drmDevicePtr *device) {
    (void)file, (void)flags;
    *device = make_device();
    return 0;
}

void drmFreeDevices(drmDevicePtr devices[], int count) { (void)devices, (void)count; }
void drmFreeDevice(drmDevicePtr *device) { (void)device; }

drmVersionPtr drmGetVersion(int file) {
    (void)file;
    drmVersionPtr version = calloc(1, sizeof *version);
    if (version) {
        version->version_major = 1;
        version->version_minor = 1;
        version->name = strdup("xe");
        version->name_len = 2;
        version->date = strdup("");
        version->desc = strdup("");
    }
    return version;
}

void drmFreeVersion(drmVersionPtr version) {
    free(version->name);
    free(version->date);
    free(version->desc);
    free(version);
}

int drmGetCap(int file, uint64_t capability, uint64_t *value) {
    (void)file, (void)capability;
    *value = 1;
    return 0;
}

/* Fences: all that is waited for has happened. */

int drmSyncobjCreate(int file, uint32_t flags, uint32_t *handle) {
    (void)file, (void)flags;
    *handle = ++last_handle;
    return 0;
}

int drmSyncobjDestroy(int file, uint32_t handle) { return (void)file, (void)handle, 0; }

int drmSyncobjWait(int file, uint32_t *handles, unsigned count, int64_t until, unsigned flags, uint32_t *first) {
    return (void)file, (void)handles, (void)count, (void)until, (void)flags, (void)first, 0;
}

int drmSyncobjReset(int file, const uint32_t *handles, uint32_t count) { return (void)file, (void)handles, (void)count, 0; }
int drmSyncobjSignal(int file, const uint32_t *handles, uint32_t count) { return (void)file, (void)handles, (void)count, 0; }

int drmSyncobjTimelineSignal(int file, const uint32_t *handles, uint64_t *points, uint32_t count) {
    return (void)file, (void)handles, (void)points, (void)count, 0;
}

int drmSyncobjTimelineWait(int file, uint32_t *handles, uint64_t *points, unsigned count, int64_t until, unsigned flags,
                           uint32_t *first) {
    return (void)file, (void)handles, (void)points, (void)count, (void)until, (void)flags, (void)first, 0;
}

static int all_reached(uint64_t *points, uint32_t count) {
    for (uint32_t index = 0; index < count; index++)
        points[index] = UINT64_MAX >> 1;
    return 0;
}

int drmSyncobjQuery(int file, uint32_t *handles, uint64_t *points, uint32_t count) {
    return (void)file, (void)handles, all_reached(points, count);
}

int drmSyncobjQuery2(int file, uint32_t *handles, uint64_t *points, uint32_t count, uint32_t flags) {
    return (void)file, (void)handles, (void)flags, all_reached(points, count);
}

int drmSyncobjTransfer(int file, uint32_t to, uint64_t to_point, uint32_t from, uint64_t from_point, uint32_t flags) {
    return (void)file, (void)to, (void)to_point, (void)from, (void)from_point, (void)flags, 0;
}
