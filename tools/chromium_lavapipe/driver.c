/* Stands in for libvk_swiftshader.so of a Chromium: hands every call on to the system's Vulkan loader, and tells two things differently.
 *
 * Chromium takes a CPU driver only if it says that it is SwiftShader, and Dawn asks for the dynamic indexing of arrays of textures and buffers,
 * which WGSL has no way to use and lavapipe of Mesa 22.3 does not report. */

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <dlfcn.h>
#include <string.h>

#define LOADER "libvulkan.so.1"

/* What SwiftShader reports. */
#define GOOGLE 0x1AE0
#define SWIFTSHADER 0xC0DE

static PFN_vkGetInstanceProcAddr get_proc;
static PFN_vkGetPhysicalDeviceFeatures get_features;
static PFN_vkGetPhysicalDeviceFeatures2 get_features2;
static PFN_vkGetPhysicalDeviceProperties get_properties;
static PFN_vkGetPhysicalDeviceProperties2 get_properties2;
static PFN_vkCreateDevice create_device;

static void claim_indexing(VkPhysicalDeviceFeatures *features) {
    features->shaderUniformBufferArrayDynamicIndexing = VK_TRUE;
    features->shaderSampledImageArrayDynamicIndexing = VK_TRUE;
    features->shaderStorageBufferArrayDynamicIndexing = VK_TRUE;
    features->shaderStorageImageArrayDynamicIndexing = VK_TRUE;
}

static void claim_name(VkPhysicalDeviceProperties *properties) {
    properties->vendorID = GOOGLE;
    properties->deviceID = SWIFTSHADER;
}

/* Switches off in `wanted` what the driver has not. */
static void reduce(VkPhysicalDeviceFeatures *wanted, const VkPhysicalDeviceFeatures *real) {
    VkBool32 *flags = (VkBool32 *)wanted;
    const VkBool32 *limits = (const VkBool32 *)real;
    for (size_t i = 0; i < sizeof *wanted / sizeof *flags; i++) flags[i] = flags[i] && limits[i];
}

static void VKAPI_CALL features(VkPhysicalDevice device, VkPhysicalDeviceFeatures *out) {
    get_features(device, out);
    claim_indexing(out);
}

static void VKAPI_CALL features2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2 *out) {
    get_features2(device, out);
    claim_indexing(&out->features);
}

static void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties *out) {
    get_properties(device, out);
    claim_name(out);
}

static void VKAPI_CALL properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *out) {
    get_properties2(device, out);
    claim_name(&out->properties);
}

static VkResult VKAPI_CALL device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator,
                                  VkDevice *out) {
    VkDeviceCreateInfo asked = *info;
    VkPhysicalDeviceFeatures real, wanted;
    get_features(physical, &real);
    if (asked.pEnabledFeatures) {
        wanted = *asked.pEnabledFeatures;
        reduce(&wanted, &real);
        asked.pEnabledFeatures = &wanted;
    }
    for (VkBaseOutStructure *next = (VkBaseOutStructure *)asked.pNext; next; next = next->pNext)
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2) reduce(&((VkPhysicalDeviceFeatures2 *)next)->features, &real);
    return create_device(physical, &asked, allocator, out);
}

__attribute__((visibility("default"))) PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name) {
    if (!get_proc) get_proc = (PFN_vkGetInstanceProcAddr)dlsym(dlopen(LOADER, RTLD_NOW | RTLD_LOCAL), "vkGetInstanceProcAddr");
    PFN_vkVoidFunction found = get_proc(instance, name);
    if (!found) return found;
    if (instance && !get_features) get_features = (PFN_vkGetPhysicalDeviceFeatures)get_proc(instance, "vkGetPhysicalDeviceFeatures");
#define REPLACE(vulkan, original, own)                   \
    if (strcmp(name, vulkan) == 0) {                     \
        original = (__typeof__(original))found;          \
        return (PFN_vkVoidFunction)own;                  \
    }
    PFN_vkGetInstanceProcAddr self = vkGetInstanceProcAddr;
    if (strcmp(name, "vkGetInstanceProcAddr") == 0) return (PFN_vkVoidFunction)self;
    REPLACE("vkGetPhysicalDeviceFeatures", get_features, features)
    REPLACE("vkGetPhysicalDeviceFeatures2", get_features2, features2)
    REPLACE("vkGetPhysicalDeviceFeatures2KHR", get_features2, features2)
    REPLACE("vkGetPhysicalDeviceProperties", get_properties, properties)
    REPLACE("vkGetPhysicalDeviceProperties2", get_properties2, properties2)
    REPLACE("vkGetPhysicalDeviceProperties2KHR", get_properties2, properties2)
    REPLACE("vkCreateDevice", create_device, device)
    return found;
}
